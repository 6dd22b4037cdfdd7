import t from 'tap';
import type { Webhook } from '../../contracts/index.js';
import type { WebhookEvent } from '../../state/index.js';
import { deliveryOf, isSubscribed } from './messages.js';

const at = '2026-11-22T10:00:00.000Z';
const webhook = (changes: Partial<Webhook> = {}): Webhook => ({
  id: 'wh_1',
  url: 'https://hooks.example.com/',
  description: '',
  events: ['*'],
  jobs: 'all',
  enabled: true,
  disabled_reason: null,
  failing_since: null,
  created_at: at,
  secrets: [{ created_at: at, expires_at: null }],
  ...changes,
});
const event = (type: string, notify: string[] = []): WebhookEvent => ({
  kind: 'event',
  entry: '1795341600000-0',
  project: 'default',
  notify,
  message: {
    type,
    timestamp: at,
    data: { job_id: 'job_1', seq: 1, position: '3fa91c0b-1-660da8a518800', details: {} },
  },
});

t.test('events by name, by category, or all', async (t) => {
  const events = ['job.state', 'checkpoint.*'];
  t.ok(isSubscribed(webhook(), event('rank.lost')));
  t.ok(isSubscribed(webhook({ events }), event('job.state')));
  t.ok(isSubscribed(webhook({ events }), event('checkpoint.committed')));
  t.notOk(isSubscribed(webhook({ events }), event('job.created')));
  t.notOk(isSubscribed(webhook({ events: ['job.*'] }), event('jobs.x')));
});

t.test('jobs that refer to it', async (t) => {
  t.notOk(isSubscribed(webhook({ jobs: 'named' }), event('job.state')));
  t.notOk(isSubscribed(webhook({ jobs: 'named' }), event('job.state', ['wh_2'])));
  t.ok(isSubscribed(webhook({ jobs: 'named' }), event('job.state', ['wh_2', 'wh_1'])));
  t.notOk(isSubscribed(webhook({ jobs: 'named', events: ['job.created'] }), event('job.state', ['wh_1'])));
});

t.test('ids are derived from the entry and match the contract', async (t) => {
  const [first, again] = [deliveryOf(webhook(), event('a.b')), deliveryOf(webhook(), event('a.b'))];
  t.same(first, again);
  t.match(first.id, /^dlv_[0-9A-HJKMNP-TV-Z]{26}$/);
  t.equal(first.created_at, '2026-11-22T10:00:00.000Z');
  const other = deliveryOf(webhook({ id: 'wh_2' }), event('a.b'));
  t.not(other.id, first.id, 'one of each webhook');
  t.equal(other.message_id, first.message_id, 'of the same message');
  const next = deliveryOf(webhook(), { ...event('a.b'), entry: '1795341600000-1' });
  t.not(next.message_id, first.message_id);
});
