import { createHash } from 'node:crypto';
import { encodeTime } from 'ulid';
import type { Webhook } from '../../contracts/index.js';
import { newUlid } from '../../platform/random.js';
import type { NewDelivery, WebhookEvent } from '../../state/index.js';

/** True if a webhook subscribes to an event. */
export function isSubscribed(webhook: Webhook, { message, notify }: WebhookEvent): boolean {
  const concerned = webhook.jobs === 'all' || notify.includes(webhook.id);
  return webhook.enabled && concerned && webhook.events.some((pattern) => matches(pattern, message.type));
}

function matches(pattern: string, type: string): boolean {
  if (pattern === '*') return true;
  return pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
}

/** Message about an event to one webhook; deterministic. */
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

/** A test message to a webhook. */
export function pingOf(webhookId: string, now: Date): NewDelivery {
  const createdAt = now.toISOString();
  const message = { type: 'webhook.ping', timestamp: createdAt, data: { webhook_id: webhookId } } as const;
  return {
    id: `dlv_${newUlid()}`,
    webhook_id: webhookId,
    message_id: `msg_${newUlid()}`,
    message,
    created_at: createdAt,
  };
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Derives an id in the form of a ULID: it sorts by time, and the rest is a hash of the source. */
function derivedId(at: number, source: string): string {
  const bytes = createHash('sha256').update(source).digest().subarray(0, 16);
  const rest = Array.from(bytes, (byte) => CROCKFORD[byte % 32]);
  return `${encodeTime(at, 10)}${rest.join('')}`;
}
