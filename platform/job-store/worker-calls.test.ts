/**
 * What a worker's calls give to the scripts, and what they make of the answers, without a server. What the scripts do with them is tested
 * with one, in attempts.test.ts and others.
 */
import t, { type Test } from 'tap';
import { JOB_STATES, type JobFailure, ZerofleetError } from '../../contracts/index.js';
import { testSpec } from '../testing/jobs.js';
import { jobAttempts } from './attempts.js';
import type { StoreContext } from './context.js';
import { jobExecution, LOGS_KEPT, METRICS_KEPT } from './execution.js';
import { finish, statesBefore } from './finish.js';
import { checkpointHolds } from './holds.js';
import type { Control } from './port.js';
import { controlOf, initialJob, toRecord } from './record.js';
import { worldRendezvous } from './worlds.js';
import type { WorldPlan } from './worlds-port.js';

const AT = '2026-01-01T00:00:00.000Z';
const RECENT = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const SPEC = testSpec('ds_1');
const JOB = { ...initialJob('job', SPEC, AT), epoch: 3, attempt: 2 };
const RECORD = [
  Object.entries({ ...toRecord(JOB), queue_position: '', ask: '', error_count: '4' }).flat(),
  JOB.state_history.map((change) => JSON.stringify(change)),
];

/** A store whose scripts answer what the test says; the last call of each is kept, without its time. */
function setup(t: Test, answer: () => unknown[] = () => []) {
  const calls: [name: string, call: Record<string, unknown>][] = [];
  const run = async (name: string, { at, ...call }: Record<string, unknown>) => {
    if (at !== undefined) t.match(at, RECENT);
    // As it is sent.
    calls.push([name, JSON.parse(JSON.stringify({ ...call, ...(at !== undefined && { at: 'now' }) }))]);
    return answer();
  };
  const redis = {
    hash: [] as (string | null)[],
    asked: [] as unknown[],
    hmget: async (...parameters: unknown[]) => {
      redis.asked.push(parameters);
      return redis.hash;
    },
    zrem: async (...parameters: unknown[]) => redis.asked.push(parameters),
  };
  const channels: { name: string; wake: () => void; ended: boolean }[] = [];
  const subscriptions = {
    add: async (name: string, wake: () => void) => {
      const channel = { name, wake, ended: false };
      channels.push(channel);
      return async () => {
        channel.ended = true;
      };
    },
  };
  const context = { commands: { run }, redis, prefix: '{p}', subscriptions } as unknown as StoreContext;
  return { context, calls, redis, channels };
}

const refused = (code: ConstructorParameters<typeof ZerofleetError>[0], message: string) => () => {
  throw new ZerofleetError(code, message);
};

t.test('a claim', async (t) => {
  const { context, calls } = setup(t, () => RECORD);
  const attempts = jobAttempts(context);
  const claim = await attempts.claimAttempt('job', 2, 'w', 30_000);
  t.match(claim, { granted: true, epoch: 3, job: { id: 'job', attempt: 2 }, error_count: 4, places: [] });
  t.strictSame(
    claim.granted && claim.control,
    controlOf({ state: 'queued', epoch: '3', requested_ranks: '1' }),
  );
  const call = { job_id: 'job', attempt: 2, worker: 'w', lease_ms: 30_000, at: 'now' };
  t.same(calls, [['claim_attempt', call]]);
  await attempts.claimAttempt('job', 2, 'w', 30_000, { spec: SPEC, spread: true, price_per_rank_hour: 7 });
  t.match(calls[1]?.[1], {
    ...call,
    price_per_rank_hour: 7,
    places: { spread: true, demand: { project: 'default', ranks_min: '1' } },
  });
});

t.test('a claim that is refused', async (t) => {
  const claim = (answer: () => unknown[]) =>
    jobAttempts(setup(t, answer).context).claimAttempt('job', 2, 'w', 30_000);
  const refusal = { granted: false, retry_after_ms: 0, waiting_for: null };
  t.same(await claim(() => ['waiting', 'workers']), {
    ...refusal,
    code: 'waiting_capacity',
    waiting_for: 'workers',
  });
  for (const code of ['job_not_found', 'job_final', 'attempt_superseded', 'job_paused'] as const)
    t.same(await claim(refused(code, '77')), { ...refusal, code });
  t.same(await claim(refused('lease_held', '77')), { ...refusal, code: 'lease_held', retry_after_ms: 77 });
  await t.rejects(claim(refused('job_store_unavailable', 'away')), { code: 'job_store_unavailable' });
});

t.test('keeping a lease, and giving an attempt back', async (t) => {
  const renewed = setup(t, () => ['pausing', '3', '5', '4', '2', '1']);
  t.same(await jobAttempts(renewed.context).renewLease('job', 3, 30_000), {
    desired: 'pause',
    state: 'pausing',
    epoch: 3,
    save_request: 5,
    requested_ranks: 2,
    ask: 1,
  });
  t.same(renewed.calls, [['renew_lease', { job_id: 'job', epoch: 3, lease_ms: 30_000, at: 'now' }]]);
  const released = setup(t, () => RECORD);
  const attempts = jobAttempts(released.context);
  t.match(await attempts.releaseAttempt('job', 3, { to: 'queued' }), { id: 'job' });
  await attempts.releaseAttempt('job', 3, { to: 'paused', reason: 'r', delay_ms: 9, preempted: true });
  const call = { job_id: 'job', epoch: 3, at: 'now' };
  t.same(released.calls, [
    ['release_attempt', { ...call, to: 'queued' }],
    ['release_attempt', { ...call, to: 'paused', reason: 'r', delay_ms: 9, preempted: true }],
  ]);
});

t.test('queueing again', async (t) => {
  const abandoned = setup(t, () => ['a', 'b']);
  t.same(await jobAttempts(abandoned.context).requeueAbandoned(500), ['a', 'b']);
  t.same(abandoned.calls, [['requeue_abandoned', { grace_ms: 500, limit: 100, at: 'now' }]]);
  for (const [reply, queued] of [
    ['1', true],
    ['0', false],
  ]) {
    const { context, calls } = setup(t, () => [reply]);
    t.equal(await jobAttempts(context).requeueUnqueued('job', 2), queued);
    t.same(calls, [['requeue_unqueued', { job_id: 'job', attempt: 2 }]]);
  }
});

t.test('what people want is looked up at once, with each message, and not after the end', async (t) => {
  const { context, redis, channels } = setup(t);
  const seen: Control[] = [];
  redis.hash = ['running', '3', null, null, '2', null];
  const unwatch = await jobAttempts(context).watchControl('job', (control) => seen.push(control));
  t.match(seen, [{ desired: 'run', epoch: 3 }]);
  t.same(redis.asked, [
    ['{p}:job:job', 'state', 'epoch', 'save_requested', 'save_answered', 'requested_ranks', 'ask'],
  ]);
  const [channel] = channels;
  t.equal(channel?.name, '{p}:job:job:control');
  const message = async () => {
    channel?.wake();
    await new Promise(setImmediate);
  };
  redis.hash = ['cancelling', '3', '2', '1', '2', '1'];
  await message();
  t.match(seen.slice(1), [{ desired: 'cancel', save_request: 2, requested_ranks: 2, ask: 1 }]);
  redis.hash = [null, null, null, null, null, null];
  await message();
  redis.hash = ['running', null, null, null, null, null];
  await message();
  t.equal(seen.length, 2, 'a job that is gone wants nothing');
  redis.hash = ['running', '3', null, null, '2', null];
  const { hmget } = redis;
  redis.hmget = () => Promise.reject(new Error('away'));
  await message();
  redis.hmget = hmget;
  await unwatch();
  t.equal(channel?.ended, true);
  await message();
  t.equal(seen.length, 2);
});

t.test('a change of state follows the table', async (t) => {
  const { context, calls } = setup(t, () => RECORD);
  const { transition } = jobExecution(context);
  t.match(await transition('job', 3, 'running'), { id: 'job' });
  const call = {
    job_id: 'job',
    epoch: 3,
    to: 'running',
    from: statesBefore('running'),
    working: ['provisioning', 'starting', 'running', 'recovering'],
    patch: {},
    at: 'now',
  };
  t.same(calls, [['transition', call]]);
  t.ok(call.from.includes('starting') && !call.from.includes('queued'));
  t.ok(JOB_STATES.every((state) => !statesBefore(state).includes('succeeded')));
  const patch = { world_size: null, lost_work_seconds: 1.5, error_count: undefined } as never;
  await transition('job', 3, 'running', { reason: 'r', patch });
  t.same(calls[1]?.[1], { ...call, reason: 'r', patch: { world_size: '', lost_work_seconds: '1.5' } });
  for (const state of ['succeeded', 'failed', 'cancelled'] as never[])
    await t.rejects(transition('job', 3, state), { code: 'invalid_transition' });
  t.equal(calls.length, 2);
});

t.test('a final state', async (t) => {
  const { context, calls } = setup(t, () => ['done', ...RECORD]);
  t.match(await jobExecution(context).finishJob('job', 3, 'succeeded'), { id: 'job' });
  const call = {
    job_id: 'job',
    epoch: 3,
    state: 'succeeded',
    from: statesBefore('succeeded'),
    failure: '',
    export: '',
    at: 'now',
  };
  t.same(calls, [['finish_job', call]]);
  const failure = { code: 'rank_lost' } as JobFailure;
  const options = { reason: 'r', failure, export: { prefix: 'x' } as never };
  t.match(await finish(context, 'job', null, 'failed', options), { id: 'job' });
  const { epoch: _, ...without } = call;
  t.same(calls[1]?.[1], {
    ...without,
    state: 'failed',
    from: statesBefore('failed'),
    reason: 'r',
    failure: '{"code":"rank_lost"}',
    export: '{"prefix":"x"}',
  });
  const busy = setup(t, () => ['busy']).context;
  t.equal(await finish(busy, 'job', null, 'failed', {}), null);
  await t.rejects(jobExecution(busy).finishJob('job', null, 'failed'), { code: 'invalid_state' });
});

t.test('metrics, logs and events carry the epoch', async (t) => {
  const { context, calls } = setup(t, () => ['12']);
  const { report, appendLogs, appendEvent } = jobExecution(context);
  const call = { job_id: 'job', epoch: 3 };
  const metric = { step: 1, at: AT } as never;
  t.equal(await report('job', 3, [metric], null), 12);
  await report('job', 3, [], JOB.progress, { batch: 5 });
  t.same(calls, [
    ['report', { ...call, metrics: [`{"step":1,"at":"${AT}","epoch":3}`], keep: METRICS_KEPT, at: 'now' }],
    [
      'report',
      {
        ...call,
        metrics: [],
        progress: JSON.stringify(JOB.progress),
        batch: 5,
        keep: METRICS_KEPT,
        at: 'now',
      },
    ],
  ]);
  calls.length = 0;
  await report('job', 3, [{ step: 1 } as never], null);
  const [text] = (calls[0]?.[1].metrics ?? []) as string[];
  t.match(JSON.parse(text ?? ''), { step: 1, at: RECENT, epoch: 3 });
  calls.length = 0;

  t.equal(await appendLogs('job', 3, [{ text: 'x' } as never]), 12);
  await appendLogs('job', 3, [], { batch: 6 });
  t.same(calls, [
    ['append_logs', { ...call, lines: ['{"text":"x","epoch":3}'], keep: LOGS_KEPT }],
    ['append_logs', { ...call, lines: [], batch: 6, keep: LOGS_KEPT }],
  ]);
  calls.length = 0;

  t.equal(await appendEvent('job', 3, { type: 'rank.lost' }), 12);
  t.same(calls, [['append_event', { ...call, type: 'rank.lost', data: '{}', at: 'now' }]]);
  calls.length = 0;
  await appendEvent('job', 3, { type: 'x', data: { a: 1 }, at: AT, blame: { b: 2 } as never });
  t.same(calls, [['append_event', { ...call, type: 'x', data: '{"a":1}', at: 'now', blame: { b: 2 } }]]);
  t.same([METRICS_KEPT, LOGS_KEPT], [100_000, 10_000]);
});

t.test('checkpoints are told of and removed in an epoch', async (t) => {
  const { context, calls } = setup(t, () => ['1']);
  const { commitCheckpoint, removeCheckpoint } = jobExecution(context);
  const checkpoint = { id: 'ckpt', step: 5, state_digest: 'd', prefix: 'p' } as never;
  await commitCheckpoint('job', 3, checkpoint);
  await commitCheckpoint('job', 3, checkpoint, { save_request: 8 });
  const call = { job_id: 'job', epoch: 3, checkpoint_id: 'ckpt', at: 'now' };
  const committed = {
    ...call,
    checkpoint: JSON.stringify(checkpoint),
    ref: '{"id":"ckpt","step":5,"state_digest":"d"}',
  };
  t.same(calls, [
    ['commit_checkpoint', committed],
    ['commit_checkpoint', { ...committed, save_request: 8 }],
  ]);
  calls.length = 0;
  t.equal(await removeCheckpoint('job', 3, 'ckpt'), true);
  t.same(calls, [['remove_checkpoint', call]]);
  const none = setup(t, () => ['0']).context;
  t.equal(await jobExecution(none).removeCheckpoint('job', 3, 'ckpt'), false);
});

t.test('holds', async (t) => {
  const { context, calls, redis } = setup(t, () => ['1']);
  const { holdCheckpoint, letGoCheckpoint } = checkpointHolds(context);
  t.equal(await holdCheckpoint('ckpt', 'me'), true);
  await holdCheckpoint('ckpt', 'me', 5);
  const call = { checkpoint_id: 'ckpt', holder: 'me' };
  t.same(calls, [
    ['hold_checkpoint', { ...call, ttl_ms: 86_400_000 }],
    ['hold_checkpoint', { ...call, ttl_ms: 5 }],
  ]);
  await letGoCheckpoint('ckpt', 'me');
  t.same(redis.asked, [['{p}:checkpoint:ckpt:holds', 'me']]);
  const gone = setup(t, () => ['0']).context;
  t.equal(await checkpointHolds(gone).holdCheckpoint('ckpt', 'me'), false);
});

t.test('worlds', async (t) => {
  const plan: WorldPlan = {
    world_id: 'w1',
    token: 'token',
    leader: { worker_id: 'leader', address: '10.0.0.1', port: 1 },
    members: [{ worker_id: 'a', ranks: [1] }],
  };
  const sealed = setup(t, () => ['7']);
  t.same(await worldRendezvous(sealed.context).sealWorld('job', 3, plan), {
    ...plan,
    job_id: 'job',
    epoch: 3,
    generation: 7,
  });
  t.same(sealed.calls, [
    ['seal_world', { job_id: 'job', epoch: 3, world_id: 'w1', plan: JSON.stringify(plan), members: ['a'] }],
  ]);
  const found = setup(t, () => [['job', '3', '7', JSON.stringify(plan)]]);
  const worlds = worldRendezvous(found.context);
  t.same(await worlds.findWorlds('a'), [{ ...plan, job_id: 'job', epoch: 3, generation: 7 }]);
  await worlds.closeWorld('job', 'w1');
  t.same(found.calls, [
    ['find_worlds', { worker: 'a' }],
    ['close_world', { job_id: 'job', world_id: 'w1' }],
  ]);
  await worlds.watchWorlds('a', () => undefined);
  t.equal(found.channels[0]?.name, '{p}:worker:a:worlds');
});
