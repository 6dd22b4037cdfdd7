/**
 * Arguments that a worker's calls about its attempt pass to the scripts, and the handling of the replies.
 * attempts.test.ts tests the scripts themselves, with a server.
 */
import t from 'tap';
import { documentHash } from '../../platform/canonical-json.js';
import { notedCommands, RECORD, refused } from '../testing/noted-commands.js';
import { jobAttempts } from './attempts.js';
import { type Control, controlOf } from './control.js';

const PLACES = JSON.stringify([
  { worker_id: 'a', slots: 3 },
  { worker_id: 'b', slots: 2 },
]);

t.test('a claim', async (t) => {
  const { context, calls } = notedCommands(t, () => RECORD);
  const attempts = jobAttempts(context);
  const claim = await attempts.claimAttempt('job', 2, 'w', 30_000);
  t.match(claim, {
    granted: true,
    execution: '3-a',
    job: { id: 'job', attempt: 2, epoch: 3 },
    error_count: 4,
    placements: [],
  });
  t.strictSame(
    claim.granted && claim.control,
    controlOf({
      state: 'queued',
      requested_ranks: '1',
      overrides: documentHash([]),
    }),
  );
  const call = { job_id: 'job', attempt: 2, worker: 'w', lease_ms: 30_000, at: 'now' };
  await attempts.claimAttempt('job', 2, 'w', 30_000, { allocated: true, price_per_rank_hour: 7 });
  t.same(
    calls.map(([name, { token, ...rest }]) => [name, /^[0-9a-f]{12}$/.test(`${token}`), rest]),
    [
      ['claim_attempt', true, call],
      ['claim_attempt', true, { ...call, price_per_rank_hour: 7, allocated: true }],
    ],
  );
  t.not(calls[0]?.[1].token, calls[1]?.[1].token);
});

t.test('a refused claim', async (t) => {
  const claim = (answer: () => unknown[]) =>
    jobAttempts(notedCommands(t, answer).context).claimAttempt('job', 2, 'w', 30_000);
  const refusal = { granted: false, retry_after_ms: 0 };
  for (const code of ['job_not_found', 'job_final', 'attempt_superseded', 'job_paused'] as const)
    t.same(await claim(refused(code, '77')), { ...refusal, code });
  t.same(await claim(refused('lease_held', '77')), { ...refusal, code: 'lease_held', retry_after_ms: 77 });
  await t.rejects(claim(refused('job_store_unavailable', 'away')), { code: 'job_store_unavailable' });
});

t.test('renewing a lease, and releasing an attempt', async (t) => {
  const renewed = notedCommands(t, () => ['pausing', '5', '4', '2', 'hash', '1', PLACES, PLACES]);
  t.same(await jobAttempts(renewed.context).renewLease('job', '3-a', 30_000), {
    desired: 'pause',
    state: 'pausing',
    save_request: 5,
    requested_ranks: 2,
    overrides: 'hash',
    preemption_request: 1,
    held_ranks: 5,
    moves: true,
  });
  t.same(renewed.calls, [['renew_lease', { job_id: 'job', execution: '3-a', lease_ms: 30_000, at: 'now' }]]);
  const released = notedCommands(t, () => RECORD);
  const attempts = jobAttempts(released.context);
  t.match(await attempts.releaseAttempt('job', '3-a', { to: 'queued' }), { id: 'job' });
  await attempts.releaseAttempt('job', '3-a', { to: 'paused', reason: 'r', delay_ms: 9, preempted: true });
  const call = { job_id: 'job', execution: '3-a', at: 'now' };
  t.same(released.calls, [
    ['release_attempt', { ...call, to: 'queued' }],
    ['release_attempt', { ...call, to: 'paused', reason: 'r', delay_ms: 9, preempted: true }],
  ]);
});

t.test('requeueing', async (t) => {
  const abandoned = notedCommands(t, () => ['a', 'b']);
  t.same(await jobAttempts(abandoned.context).requeueAbandoned(500), ['a', 'b']);
  t.same(abandoned.calls, [['requeue_abandoned', { grace_ms: 500, limit: 100, at: 'now' }]]);
});

t.test('the control state is read at once, with each message, and not after the end', async (t) => {
  const { context, redis, channels } = notedCommands(t);
  const seen: Control[] = [];
  redis.hash = ['running', null, null, '2', 'a', null];
  const unwatch = await jobAttempts(context).watchControl('job', (control) => seen.push(control));
  t.match(seen, [{ desired: 'run', requested_ranks: 2 }]);
  t.same(redis.asked, [
    [
      '{p}:job:job',
      'state',
      'save_requested',
      'save_completed',
      'requested_ranks',
      'overrides',
      'preemption_request',
      'placements',
      'move',
    ],
  ]);
  const [channel] = channels;
  t.equal(channel?.name, '{p}:job:job:control');
  const message = async () => {
    channel?.wake();
    await new Promise(setImmediate);
  };
  redis.hash = ['cancelling', '2', '1', '2', 'b', '1'];
  await message();
  t.match(seen.slice(1), [
    { desired: 'cancel', save_request: 2, requested_ranks: 2, overrides: 'b', preemption_request: 1 },
  ]);
  redis.hash = [null, null, null, null, null, null];
  await message();
  t.equal(seen.length, 2, 'a deleted job requests nothing');
  redis.hash = ['running', null, null, '2', 'a', null];
  const { hmget } = redis;
  redis.hmget = () => Promise.reject(new Error('away'));
  await message();
  redis.hmget = hmget;
  await unwatch();
  t.equal(channel?.ended, true);
  await message();
  t.equal(seen.length, 2);
});
