/** The checkpoints of a job without a job store and without processes: in which order things happen, and what ends them. */
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { type Checkpoint, ZerofleetError } from '../../contracts/index.js';
import { checkpointDirectory, checkpointKey, checkpointsPrefix } from '../../platform/checkpoint/layout.js';
import { createLogger } from '../../platform/logging.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import {
  ADAM_STATES,
  putTestCheckpoint,
  testManifest,
  testParams,
} from '../../platform/testing/checkpoints.js';
import type { AttemptContext } from '../agent/context.js';
import { describeError } from '../agent/failure.js';
import { StopRequests } from '../agent/stop-requests.js';
import { testSpec } from '../testing/start-message.js';
import { JobCheckpoints } from './job-checkpoints.js';
import type { CompleteSave } from './save-collector.js';

const SHAPE = { numels: [10], cuts: [5] };
const EPOCH = 2;
const log = createLogger({ level: 'silent', name: 'test' });
const named = (step: number, epoch = EPOCH, nonce = 'aaaaaaaa') =>
  checkpointDirectory({ step, epoch, nonce });
const keyOf = (directory: string) => checkpointKey('job', directory);
const record = (directory: string) =>
  ({ id: `of ${directory}`, prefix: keyOf(directory), step: 1 }) as Checkpoint;

interface SetupOptions {
  /** What the job store knows already. */
  recorded?: Checkpoint[];
  /** Called before each step by its name; what it throws becomes of the step. */
  before?: (step: string) => void;
}

/** An attempt that writes down what it does. */
async function setup(t: Test, { recorded = [], before = () => undefined }: SetupOptions = {}) {
  const steps: string[] = [];
  const told: { type: string; data: Record<string, unknown> }[] = [];
  const note = (step: string) => {
    before(step);
    steps.push(step);
  };
  const store = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => store.close());
  const short = (key: string) => key.slice(checkpointsPrefix('job').length);
  const objects = new Proxy(store, {
    get(target, name: keyof ObjectStore) {
      if (name === 'put')
        return (...call: Parameters<ObjectStore['put']>) => {
          note(`put ${short(call[0])}`);
          return target.put(...call);
        };
      if (name === 'delete')
        return (keys: string[]) => {
          note(`delete ${short(keys[0] ?? '').split('/')[0]}`);
          return target.delete(keys);
        };
      if (name === 'abandonUploads') return async (prefix: string) => note(`abandon ${prefix}`);
      if (name === 'list')
        return (prefix: string) => {
          note('list');
          return target.list(prefix);
        };
      const value = target[name];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const jobStore = {
    listCheckpoints: async () => ({ data: recorded, next_cursor: null }),
    commitCheckpoint: async (
      job: string,
      epoch: number,
      checkpoint: Checkpoint,
      { save_request = -1 } = {},
    ) => {
      note(`record ${job} ${epoch} ${checkpoint.step} for ${save_request}`);
      recorded.unshift(checkpoint);
    },
    removeCheckpoint: async (_job: string, _epoch: number, id: string) => {
      note(`forget ${id}`);
      return true;
    },
    appendEvent: async (_job: string, _epoch: number, event: (typeof told)[number]) => {
      note(event.type);
      return told.push(event);
    },
  };
  const lease = {
    epoch: EPOCH,
    lost: new AbortController().signal,
    confirm: async () => note('confirm'),
    call: <T>(work: (job: string, epoch: number) => Promise<T>) => work('job', EPOCH),
  };
  const once = { attempts: 2, first_delay_ms: 1, max_delay_ms: 1 };
  const stops = new StopRequests();
  const ctx = {
    deps: { objects, store: jobStore, timing: { storage: once } },
    job: { id: 'job', spec: testSpec({ keep_last: 2 }) },
    lease,
    stops,
    log,
  } as unknown as AttemptContext;
  return { checkpoints: new JobCheckpoints(ctx, 3), stops, steps, told, recorded, store };
}

const BY = {
  connected: {
    kind: 'connected' as const,
    params: testParams(SHAPE),
    states: [...ADAM_STATES],
    numerics_fingerprint: 'cpu-generic/1',
  },
  world_size: 2,
  data_digest: 'sha256:0',
};

function saveOf(step: number, changes: Partial<CompleteSave> = {}): CompleteSave {
  return {
    directory: named(step),
    step,
    optimizer_steps: step,
    skipped_steps: 0,
    loss_scaler: {
      scale: 1,
      iteration: step,
      last_overflow_iteration: -1,
      hysteresis: 1,
      skipped_in_a_row: 0,
    },
    lr_override: null,
    loss_scale_override: null,
    shards: testManifest(SHAPE).shards,
    digest_parts: ['0'.repeat(32), '1'.padStart(32, '0')],
    save_request: 0,
    cost: { stall_seconds: 1, write_seconds: 2 },
    ...changes,
  };
}

t.test(
  'a save counts when its manifest is there; nothing comes before the question of whose the job is',
  async (t) => {
    const { checkpoints, stops, steps, told, recorded } = await setup(t);
    stops.setSaveRequest(5);
    await checkpoints.commit(saveOf(4, { save_request: 5 }), BY);
    t.strictSame(steps, [
      'confirm',
      `put ${named(4)}/MANIFEST.json`,
      'record job 2 4 for 5',
      'checkpoint.saved',
      'list',
    ]);
    const [first] = recorded;
    t.match(first, { step: 4, prefix: keyOf(named(4)), world_size: 2, job_id: 'job' });
    t.equal(checkpoints.latest, first);
    t.equal(checkpoints.latest_step, 4);
    t.equal(stops.save_request, 0, 'the request is answered');
    t.match(told, [
      {
        type: 'checkpoint.saved',
        data: {
          checkpoint: first?.id,
          step: 4,
          bytes: first?.bytes,
          stall_seconds: 1,
          write_seconds: 2,
          save_request: 5,
        },
      },
    ]);
    t.equal(checkpoints.countError(), 1, 'errors count from here anew');
  },
);

t.test('each checkpoint knows the one before', async (t) => {
  const { checkpoints, store, recorded } = await setup(t);
  const parentOf = async (step: number) =>
    JSON.parse((await store.get(`${keyOf(named(step))}/MANIFEST.json`)).toString()).parent;
  await checkpoints.commit(saveOf(4), BY);
  await checkpoints.commit(saveOf(8), BY);
  t.equal(await parentOf(4), null);
  t.equal(await parentOf(8), recorded[1]?.id);
});

t.test('what is not whole, or not ours any more, is not committed', async (t) => {
  const incomplete = await setup(t);
  const shards = testManifest(SHAPE).shards.slice(1);
  await t.rejects(incomplete.checkpoints.commit(saveOf(4, { shards }), BY), {
    code: 'checkpoint_incomplete',
  });
  t.strictSame(incomplete.steps, []);

  const refusing = (step: string) => ({
    before: (now: string) => {
      if (now.startsWith(step)) throw new ZerofleetError('stale_epoch', 'epoch 3');
    },
  });
  const lost = await setup(t, refusing('confirm'));
  await t.rejects(lost.checkpoints.commit(saveOf(4), BY), { code: 'stale_epoch' });
  t.strictSame(lost.steps, []);
  t.equal(lost.checkpoints.latest, null);

  const late = await setup(t, refusing('record'));
  await t.rejects(late.checkpoints.commit(saveOf(4), BY), { code: 'stale_epoch' });
  t.strictSame(late.steps, ['confirm', `put ${named(4)}/MANIFEST.json`]);
  t.equal(late.checkpoints.latest, null);
  t.equal(late.checkpoints.countError(), 4);
});

t.test('a checkpoint counts though old ones can not be removed', async (t) => {
  const { checkpoints } = await setup(t, {
    before: (step) => {
      if (step === 'list') throw new ZerofleetError('stale_epoch', 'epoch 3');
    },
  });
  await checkpoints.commit(saveOf(4), BY);
  t.equal(checkpoints.latest_step, 4);
});

t.test('retention follows, and keeps as many as the job says', async (t) => {
  const { checkpoints, steps, recorded } = await setup(t);
  for (const step of [4, 8, 12]) await checkpoints.commit(saveOf(step), BY);
  t.strictSame(steps.slice(-3), [`forget ${recorded[2]?.id}`, 'list', `delete ${named(4)}`]);
});

t.test('the newest of a job that has none is null', async (t) => {
  const { checkpoints, steps } = await setup(t);
  t.equal(await checkpoints.newest(), null);
  t.equal(checkpoints.latest_step, null);
  t.strictSame(steps, ['list', 'confirm', 'abandon jobs/job/checkpoints/']);
});

t.test('the newest is taken and told of; what never became one goes', async (t) => {
  const { checkpoints, steps, store } = await setup(t);
  await putTestCheckpoint(store, keyOf(named(5, 1)), SHAPE, 'ckpt_old');
  await putTestCheckpoint(store, keyOf(named(10, 1)), SHAPE, 'ckpt_new');
  await store.put(`${keyOf(named(15, 1))}/shard-0`, Buffer.from('x'));
  await store.put(`${keyOf(named(16, 3))}/shard-0`, Buffer.from('x'));
  const found = await checkpoints.newest();
  t.match(found, {
    prefix: keyOf(named(10, 1)),
    manifest: { id: 'ckpt_new' },
    checkpoint: { id: 'ckpt_new' },
  });
  t.equal(checkpoints.latest, found?.checkpoint);
  t.strictSame(steps, [
    'list',
    'confirm',
    `delete ${named(15, 1)}`,
    'abandon jobs/job/checkpoints/',
    'record job 2 10 for 0',
  ]);
});

t.test('nothing is removed by an agent that has lost the job', async (t) => {
  const { checkpoints, steps, store } = await setup(t, {
    before: (step) => {
      if (step === 'confirm') throw new ZerofleetError('stale_epoch', 'epoch 3');
    },
  });
  await store.put(`${keyOf(named(15, 1))}/shard-0`, Buffer.from('x'));
  await t.rejects(checkpoints.newest(), { code: 'stale_epoch' });
  t.strictSame(steps, ['list']);
});

t.test('what can not be removed does not keep a job from going on', async (t) => {
  for (const failing of ['delete', 'abandon']) {
    const { checkpoints, store } = await setup(t, {
      before: (step) => {
        if (step.startsWith(failing)) throw new ZerofleetError('access_denied', 'no');
      },
    });
    await putTestCheckpoint(store, keyOf(named(10, 1)), SHAPE, 'ckpt_new');
    await store.put(`${keyOf(named(15, 1))}/shard-0`, Buffer.from('x'));
    t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_new', failing);
  }
});

t.test('a manifest outside the line of checkpoints is removed and not used', async (t) => {
  const { checkpoints, steps, store } = await setup(t, { recorded: [record(named(6, 2))] });
  await putTestCheckpoint(store, keyOf(named(6, 2)), SHAPE, 'ckpt_known');
  await putTestCheckpoint(store, keyOf(named(9, 1)), SHAPE, 'ckpt_stray');
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_known');
  t.ok(steps.includes(`delete ${named(9, 1)}`));
});

t.test('one that can not be read is passed over for the one before, and an event says so', async (t) => {
  const { checkpoints, steps, told, store } = await setup(t, { recorded: [record(named(10, 2))] });
  await putTestCheckpoint(store, keyOf(named(5, 2)), SHAPE, 'ckpt_old');
  await store.put(`${keyOf(named(10, 2))}/MANIFEST.json`, Buffer.from('{'));
  await store.put(`${keyOf(named(11, 2))}/MANIFEST.json`, Buffer.from('{'));
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
  const fallback = (name: string, id: string | null, step: number | null) => ({
    type: 'checkpoint.fallback',
    data: { checkpoint: id, step, prefix: keyOf(name), code: 'manifest_invalid', message: /JSON/ },
  });
  t.match(told, [fallback(named(11, 2), null, null), fallback(named(10, 2), `of ${named(10, 2)}`, 1)]);
  told.length = 0;
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
  t.strictSame(told, [], 'and not looked at again');
  t.notOk(
    steps.some((step) => step.startsWith('delete')),
    'nor removed',
  );
});

t.test('a store that is away is no damage', async (t) => {
  const { checkpoints, told, store } = await setup(t);
  await putTestCheckpoint(store, keyOf(named(5, 2)), SHAPE, 'ckpt_old');
  const get = store.get.bind(store);
  let fails = 2;
  store.get = async (...call: Parameters<ObjectStore['get']>) => {
    fails -= 1;
    if (fails >= 0) throw new ZerofleetError('object_store_unavailable', 'away');
    return get(...call);
  };
  await t.rejects(checkpoints.newest(), { code: 'object_store_unavailable' });
  t.strictSame(told, []);
  fails = 1;
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old', 'it is asked again');
});

t.test('one that was rejected is not used again', async (t) => {
  const { checkpoints, told, store } = await setup(t);
  await putTestCheckpoint(store, keyOf(named(5, 2)), SHAPE, 'ckpt_old');
  await putTestCheckpoint(store, keyOf(named(10, 2)), SHAPE, 'ckpt_new');
  const newest = await checkpoints.newest();
  if (!newest) throw new Error('none');
  await checkpoints.reject(newest, describeError(new ZerofleetError('shard_corrupt', 'chunk 3')));
  t.match(told, [
    {
      type: 'checkpoint.fallback',
      data: { checkpoint: 'ckpt_new', step: 10, code: 'shard_corrupt', message: 'chunk 3' },
    },
  ]);
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
});

t.test('what the ranks read is compared with what is stored', async (t) => {
  const { checkpoints, store } = await setup(t);
  const directory = keyOf(named(5));
  const { shards } = await putTestCheckpoint(store, directory, SHAPE, 'ckpt');
  const source = { kind: 'checkpoint', directory, restore: 'full', own: true } as const;
  const range = { file: shards[0]?.file ?? '', begin: 64, end: 68, crc32c: '00000000' };
  await t.resolves(checkpoints.verifyLoad({ source, files: shards }, []));
  await t.rejects(checkpoints.verifyLoad({ source, files: shards }, [range]), { code: 'shard_corrupt' });
});

t.test('the time without a checkpoint is counted once', async (t) => {
  const { checkpoints } = await setup(t);
  checkpoints.workBegins();
  const first = checkpoints.unsavedSeconds();
  t.ok(first >= 0 && first < 600);
  t.equal(checkpoints.countError(), 4);
  t.equal(checkpoints.countError(), 5);
});
