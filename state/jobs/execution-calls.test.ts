/** Arguments that a worker's writes pass to the scripts, and the handling of the replies. */
import t from 'tap';
import { JOB_STATES, type JobFailure } from '../../contracts/index.js';
import { type WorldPlan, worldRendezvous } from '../pools/worlds.js';
import { METRICS_PER_BLOCK } from '../streams/metric-blocks.js';
import { AT, JOB, notedCommands, RECENT, RECORD } from '../testing/noted-commands.js';
import { jobExecution, LOGS_KEPT, METRICS_KEPT } from './execution.js';
import { finish, statesBefore } from './finish.js';
import { checkpointHolds } from './holds.js';

t.test('a change of state follows the table', async (t) => {
  const { context, calls } = notedCommands(t, () => RECORD);
  const { transition } = jobExecution(context);
  t.match(await transition('job', '3-a', 'running'), { id: 'job' });
  const call = {
    job_id: 'job',
    execution: '3-a',
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
  await transition('job', '3-a', 'running', { reason: 'r', patch });
  t.same(calls[1]?.[1], { ...call, reason: 'r', patch: { world_size: '', lost_work_seconds: '1.5' } });
  for (const state of ['succeeded', 'failed', 'cancelled'] as never[])
    await t.rejects(transition('job', '3-a', state), { code: 'invalid_transition' });
  t.equal(calls.length, 2);
});

t.test('a final state', async (t) => {
  const { context, calls } = notedCommands(t, () => ['done', ...RECORD]);
  t.match(await jobExecution(context).finishJob('job', '3-a', 'succeeded'), { id: 'job' });
  const call = {
    job_id: 'job',
    execution: '3-a',
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
  const { execution: _, ...without } = call;
  t.same(calls[1]?.[1], {
    ...without,
    state: 'failed',
    from: statesBefore('failed'),
    reason: 'r',
    failure: '{"code":"rank_lost"}',
    export: '{"prefix":"x"}',
  });
  const busy = notedCommands(t, () => ['busy']).context;
  t.equal(await finish(busy, 'job', null, 'failed', {}), null);
  await t.rejects(jobExecution(busy).finishJob('job', null, 'failed'), { code: 'invalid_state' });
});

t.test('metrics, logs and events carry the execution and its epoch', async (t) => {
  const { context, calls } = notedCommands(t, () => ['12']);
  const { report, appendLogs, appendEvent } = jobExecution(context);
  const call = { job_id: 'job', execution: '3-a' };
  const metric = { step: 1, at: AT } as never;
  t.equal(await report('job', '3-a', [metric], null), 12);
  await report('job', '3-a', [], JOB.progress, { batch: 5 });
  t.same(calls, [
    [
      'report',
      {
        ...call,
        metrics: [{ step: 1, text: `{"step":1,"at":"${AT}","epoch":3}`, values: {}, line_bytes: 4 }],
        keep: METRICS_KEPT,
        block: METRICS_PER_BLOCK,
        at: 'now',
      },
    ],
    [
      'report',
      {
        ...call,
        metrics: [],
        progress: JSON.stringify(JOB.progress),
        batch: 5,
        keep: METRICS_KEPT,
        block: METRICS_PER_BLOCK,
        at: 'now',
      },
    ],
  ]);
  calls.length = 0;
  await report('job', '3-a', [{ step: 1 } as never], null);
  const [noted] = (calls[0]?.[1].metrics ?? []) as { text: string }[];
  t.match(JSON.parse(noted?.text ?? ''), { step: 1, at: RECENT, epoch: 3 });
  calls.length = 0;

  t.equal(await appendLogs('job', '3-a', [{ text: 'x' } as never]), 12);
  await appendLogs('job', '3-a', [], { batch: 6 });
  t.same(calls, [
    ['append_logs', { ...call, lines: ['{"text":"x","epoch":3}'], keep: LOGS_KEPT }],
    ['append_logs', { ...call, lines: [], batch: 6, keep: LOGS_KEPT }],
  ]);
  calls.length = 0;

  t.equal(await appendEvent('job', '3-a', { type: 'rank.lost' }), 12);
  t.same(calls, [['append_event', { ...call, type: 'rank.lost', data: '{}', at: 'now' }]]);
  calls.length = 0;
  await appendEvent('job', '3-a', { type: 'x', data: { a: 1 }, at: AT, root_cause: { b: 2 } as never });
  t.same(calls, [['append_event', { ...call, type: 'x', data: '{"a":1}', at: 'now', root_cause: { b: 2 } }]]);
  t.same([METRICS_KEPT, LOGS_KEPT], [100_000, 10_000]);
});

t.test('checkpoints are recorded and removed in an execution', async (t) => {
  const { context, calls } = notedCommands(t, () => ['1']);
  const { commitCheckpoint, removeCheckpoint } = jobExecution(context);
  const checkpoint = { id: 'ckpt', step: 5, state_digest: 'd', prefix: 'p' } as never;
  await commitCheckpoint('job', '3-a', checkpoint);
  await commitCheckpoint('job', '3-a', checkpoint, { save_request: 8 });
  const call = { job_id: 'job', execution: '3-a', checkpoint_id: 'ckpt', at: 'now' };
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
  t.equal(await removeCheckpoint('job', '3-a', 'ckpt'), true);
  t.same(calls, [['remove_checkpoint', call]]);
  const none = notedCommands(t, () => ['0']).context;
  t.equal(await jobExecution(none).removeCheckpoint('job', '3-a', 'ckpt'), false);
});

t.test('holds', async (t) => {
  const { context, calls, redis } = notedCommands(t, () => ['1']);
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
  const gone = notedCommands(t, () => ['0']).context;
  t.equal(await checkpointHolds(gone).holdCheckpoint('ckpt', 'me'), false);
});

t.test('worlds', async (t) => {
  const plan: WorldPlan = {
    world_id: 'w1',
    token: 'token',
    leader: { worker_id: 'leader', address: '10.0.0.1', port: 1 },
    members: [{ worker_id: 'a', ranks: [1] }],
  };
  const sealed = notedCommands(t, () => []);
  await worldRendezvous(sealed.context).sealWorld('job', '3-a', plan);
  t.same(sealed.calls, [
    [
      'seal_world',
      { job_id: 'job', execution: '3-a', world_id: 'w1', plan: JSON.stringify(plan), members: ['a'] },
    ],
  ]);
  const found = notedCommands(t, () => [['job', '3-a', JSON.stringify(plan)]]);
  const worlds = worldRendezvous(found.context);
  t.same(await worlds.findWorlds('a'), [{ ...plan, job_id: 'job', execution: '3-a' }]);
  await worlds.closeWorld('job', 'w1');
  t.same(found.calls, [
    ['find_worlds', { worker: 'a' }],
    ['close_world', { job_id: 'job', world_id: 'w1' }],
  ]);
  await worlds.watchWorlds('a', () => undefined);
  t.equal(found.channels[0]?.name, '{p}:worker:a:worlds');
});
