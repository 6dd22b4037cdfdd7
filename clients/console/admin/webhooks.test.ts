import t from 'tap';
import type { Delivery } from '../../../contracts/types.js';
import { attemptText, deliveryState, runOf, stateOf } from './webhooks.js';

t.test('state of a webhook', async (t) => {
  const enabled = { enabled: true, disabled_reason: null, failing_since: null };
  const failingSince = '2026-11-27T20:00:00Z';
  t.same(stateOf(enabled), { text: 'enabled', kind: 'good' });
  t.match(stateOf({ ...enabled, failing_since: failingSince }), {
    text: /^failing since .*2026/,
    kind: 'warn',
  });
  t.same(stateOf({ ...enabled, enabled: false }), { text: 'disabled', kind: '' });
  t.same(stateOf({ enabled: false, disabled_reason: 'not_delivered', failing_since: failingSince }), {
    text: 'disabled: not delivered',
    kind: 'bad',
  });
});

t.test('a message and its attempts', async (t) => {
  t.same(deliveryState({ state: 'failed' }), { text: 'failed', kind: 'bad' });
  t.equal(attemptText({ status: 503, error: 'refused_by_receiver' }), '503 refused by receiver');
  t.equal(attemptText({ status: null, error: 'timeout' }), 'timeout');
  t.equal(attemptText({ status: 204, error: null }), '204');
  const deliveryWith = (data: object) => ({ message: { data } }) as unknown as Delivery;
  t.equal(runOf(deliveryWith({ job_id: 'job_1', seq: 1 })), 'job_1');
  t.equal(runOf(deliveryWith({ webhook_id: 'wh_1' })), null);
});
