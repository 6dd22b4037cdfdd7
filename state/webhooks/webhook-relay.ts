import type { WebhookMessage } from '../../contracts/index.js';
import { formatPosition } from '../streams/stream-position.js';
import {
  type RelayedStream,
  type RelayOptions,
  type StreamRelay,
  startStreamRelay,
} from '../streams/stream-relay.js';
import type { DeliveryRound } from './webhook-deliveries.js';

/** An event on its way to the webhooks of its project. */
export interface WebhookEvent {
  kind: 'event';
  /** Id of the outbox entry, unique. */
  entry: string;
  project: string;
  /** Webhooks that the job names. */
  notify: string[];
  message: WebhookMessage;
}

/** A message of the log that is to be sent again. */
interface Redelivery extends DeliveryRound {
  kind: 'redelivery';
}

export type WebhookOutboxEntry = WebhookEvent | Redelivery;

/** Events for webhooks, and messages to send again. */
const WEBHOOK_OUTBOX: RelayedStream<WebhookOutboxEntry> = {
  name: 'webhook-outbox',
  atOnce: 1,
  parse: (fields, entry) => {
    const text = (name: string) => fields.get(name) ?? '';
    if (fields.has('delivery_id')) {
      const round = Number(text('round'));
      return { kind: 'redelivery', webhook_id: text('webhook_id'), delivery_id: text('delivery_id'), round };
    }
    const seq = Number(text('seq'));
    const position = formatPosition({ stream: text('stream'), seq, stamp: Number(text('stamp')) });
    const data = { job_id: text('job_id'), seq, position, details: JSON.parse(text('data')) };
    const message = { type: text('type'), timestamp: text('at'), data };
    return { kind: 'event', entry, project: text('project'), notify: JSON.parse(text('notify')), message };
  },
};

/** Starts a relay of webhook entries on its own connections. Redis may be away, also at the start. */
export function startWebhookRelay(options: RelayOptions<WebhookOutboxEntry>): StreamRelay {
  return startStreamRelay(WEBHOOK_OUTBOX, options);
}
