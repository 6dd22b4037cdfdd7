/** Webhooks and their messages in words. */
import type { Delivery, Webhook } from '../../../contracts/types.js';
import { dateTime, words } from '../parts/format.js';

interface State {
  text: string;
  /** Class of the badge. */
  kind: 'good' | 'warn' | 'bad' | '';
}

type WebhookState = Pick<Webhook, 'enabled' | 'disabled_reason' | 'failing_since'>;

export function stateOf({ enabled, disabled_reason, failing_since }: WebhookState): State {
  if (disabled_reason !== null) return { text: `disabled: ${words(disabled_reason)}`, kind: 'bad' };
  if (!enabled) return { text: 'disabled', kind: '' };
  if (failing_since !== null) return { text: `failing since ${dateTime(failing_since)}`, kind: 'warn' };
  return { text: 'enabled', kind: 'good' };
}

const KINDS = { pending: 'warn', succeeded: 'good', failed: 'bad' } as const;

export const deliveryState = ({ state }: Pick<Delivery, 'state'>): State => ({
  text: state,
  kind: KINDS[state],
});

/** Result of an attempt: its HTTP status, and what was wrong. */
export const attemptText = ({ status, error }: Pick<Delivery['attempts'][number], 'status' | 'error'>) =>
  [status, error === null ? null : words(error)].filter((part) => part !== null).join(' ');

/** Run of a message; null for a ping. */
export const runOf = ({ message: { data } }: Pick<Delivery, 'message'>) =>
  'job_id' in data ? data.job_id : null;
