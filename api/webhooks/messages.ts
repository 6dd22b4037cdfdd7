import { createHash } from 'node:crypto';
import { encodeTime } from 'ulid';
import type { Webhook } from '../../contracts/index.js';
import { newUlid } from '../../platform/random.js';
import type { NewDelivery, WebhookEvent } from '../../state/index.js';

/** Whether a webhook is told of an event. */
export function wants(webhook: Webhook, { message, notify }: WebhookEvent): boolean {
  const concerned = webhook.jobs === 'all' || notify.includes(webhook.id);
  return webhook.enabled && concerned && webhook.events.some((pattern) => matches(pattern, message.type));
}

function matches(pattern: string, type: string): boolean {
  if (pattern === '*') return true;
  return pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
}

/** The message about an event to one webhook; made twice, it is the same. */
export function deliveryOf(webhook: Webhook, { entry, message }: WebhookEvent): NewDelivery {
  const at = Number(entry.split('-', 1)[0]);
  return {
    id: `dlv_${derivedId(at, `${webhook.id} ${entry}`)}`,
    webhook_id: webhook.id,
    message_id: `msg_${derivedId(at, entry)}`,
    message,
    created_at: new Date(at).toISOString(),
  };
}

/** A message that only tries the webhook. */
export function pingOf(webhook_id: string, now: Date): NewDelivery {
  const created_at = now.toISOString();
  const message = { type: 'webhook.ping', timestamp: created_at, data: { webhook_id } } as const;
  return { id: `dlv_${newUlid()}`, webhook_id, message_id: `msg_${newUlid()}`, message, created_at };
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** In the form of a ULID: ids sort by time, and the rest follows from what they are of. */
function derivedId(at: number, of: string): string {
  const bytes = createHash('sha256').update(of).digest().subarray(0, 16);
  const rest = Array.from(bytes, (byte) => CROCKFORD[byte % 32]);
  return `${encodeTime(at, 10)}${rest.join('')}`;
}
