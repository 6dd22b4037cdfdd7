import { formatPosition } from '../streams/stream-position.js';
import {
  type RelayedStream,
  type RelayOptions,
  type StreamRelay,
  startStreamRelay,
} from '../streams/stream-relay.js';
import type { WebhookOutboxEntry } from './webhooks-port.js';

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
