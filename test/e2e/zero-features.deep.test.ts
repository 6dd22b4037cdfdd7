/** Features of the ZeRO core, requested over HTTP and executed by real processes. */
import t, { type Test } from 'tap';
import { collect, type Zerofleet } from '../../clients/typescript/index.js';
import type { Checkpoint, Job, JobSpec } from '../../contracts/index.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';
import { roundedToBf16, StoredState } from '../support/stored-state.js';
import { DIVERGING, FEATURES, STEPS, tinyJob } from '../support/zero-specs.js';

let stack: TestStack;
let client: Zerofleet;
let dataset: string;

const ended = () => false;

async function finish(t: Test, job: Job): Promise<Job> {
  const final = await client.jobs.until(job.id, ended, { interval_ms: 50 });
  t.equal(final.state, 'succeeded', JSON.stringify(final.failure));
  return final;
}

const run = async (t: Test, spec: JobSpec) => finish(t, await client.jobs.create(spec));

/** Trains on two ranks, pauses during training, and continues on three. */
async function runInterrupted(t: Test, spec: JobSpec): Promise<Job> {
  const { id } = await client.jobs.create({
    ...spec,
    resources: { ranks: { min: 1, max: 4, preferred: 2 } },
  });
  await client.jobs.until(id, ({ state }) => state === 'running', { interval_ms: 10 });
  await client.jobs.pause(id);
  const paused = await client.jobs.until(id, ({ state }) => state === 'paused', { interval_ms: 10 });
  const { step } = paused.progress;
  t.ok(paused.state === 'paused' && step > 0 && step < STEPS, `paused at step ${step}`);
  return finish(t, await client.jobs.resume(id, { ranks: 3 }));
}

async function lastCheckpoint({ id }: Job): Promise<Checkpoint> {
  const [last] = await collect(client.jobs.checkpoints(id));
  if (!last) throw new Error(`job ${id} has no checkpoint`);
  return last;
}

t.before(async () => {
  stack = await startStack(t, { env: { ZEROFLEET_THREADS_PER_RANK: '1' } });
  client = stack.client;
  dataset = (await client.datasets.create('openapi', sampleText())).id;
});

for (const [name, sections] of Object.entries(FEATURES)) {
  t.test(`paused on 2 ranks and finished on 3, the result equals that of 1 rank: ${name}`, async (t) => {
    const spec = tinyJob({ name: 'feature', dataset, ...sections });
    const [whole, interrupted] = await Promise.all([run(t, spec), runInterrupted(t, spec)]);
    t.match(whole.export?.state_digest, /^[0-9a-f]{32}$/);
    t.equal(interrupted.export?.state_digest, whole.export?.state_digest);

    const metrics = await collect(client.jobs.metrics(whole.id));
    t.strictSame(
      (await collect(client.jobs.metrics(interrupted.id))).map(({ step, loss, lr, loss_scale }) => ({
        step,
        loss,
        lr,
        loss_scale,
      })),
      metrics.map(({ step, loss, lr, loss_scale }) => ({ step, loss, lr, loss_scale })),
      'each step was the same',
    );
    t.ok((metrics.at(-1)?.loss ?? 9) < (metrics[0]?.loss ?? 0), 'it learns');
    checkOverrides(t, spec, metrics);
    checkSkips(t, spec, whole, await collect(client.jobs.events(whole.id)));
  });
}

/** Checks that an override applies after `step` completed steps until the next one ends it. */
function checkOverrides(
  t: Test,
  { train }: JobSpec,
  metrics: readonly { lr: number; loss_scale?: number }[],
) {
  const [from, until] = train?.overrides ?? [];
  if (!from || !until) return;
  const overridden = metrics.map(
    ({ lr, loss_scale }) =>
      lr === from.lr || (from.loss_scale !== undefined && loss_scale === from.loss_scale),
  );
  const expected = metrics.map((_, index) => index >= from.step && index < until.step);
  t.strictSame(overridden, expected, 'an override applies from its step to the next one');
}

/** Checks that a far too large initial loss scale skips steps and reports them, without one event each. */
function checkSkips(t: Test, { train }: JobSpec, job: Job, events: readonly { type: string }[]) {
  const { type, initial_scale = 1 } = train?.loss_scale ?? {};
  const overflows = type === 'dynamic' && initial_scale > 2 ** 20;
  const skips = events.filter((event) => ['step.skipped', 'loss_scale.lowered'].includes(event.type));
  if (!overflows) return;
  t.ok((job.progress.skipped_steps ?? 0) > 2, `${job.progress.skipped_steps} steps were skipped`);
  t.ok((job.progress.loss_scale ?? initial_scale) < initial_scale, 'the scale came down');
  t.ok(skips.length >= 2 && skips.length <= 2 * (job.progress.skipped_steps ?? 0), `${skips.length} events`);
}

t.test('gradients that never become finite fail the job without retries, with a remedy', async (t) => {
  const spec = tinyJob({ name: 'diverging', dataset, ranks: 2, ...DIVERGING });
  spec.retry = { max_errors: 5 };
  const { id } = await client.jobs.create(spec);
  const job = await client.jobs.until(id, ended, { interval_ms: 50 });
  t.match(job, {
    state: 'failed',
    failure: {
      category: 'diverged',
      code: 'diverged',
      rank: null,
      step: 2,
      retryable: false,
      message:
        /^step 3: .*loss scale of 16777216\. 3 steps in a row were skipped.*Lower train\.optimizer\.lr/,
    },
  });
  t.notOk(job.state_history.some(({ state }) => state === 'recovering'));
});

t.test('a job whose steps are mostly skipped fails at the same step on any number of ranks', async (t) => {
  const overflowing = {
    ...DIVERGING,
    train: {
      ...DIVERGING.train,
      steps: 20,
      max_skipped_share: 0.2,
      loss_scale: { type: 'static', initial_scale: 2 ** 24, max_skipped_steps: null },
    },
  } as const;
  const steps = [];
  for (const ranks of [1, 3]) {
    const { id } = await client.jobs.create(
      tinyJob({ name: `mostly skipped ${ranks}`, dataset, ranks, ...overflowing }),
    );
    const { state, failure } = await client.jobs.until(id, ended, { interval_ms: 50 });
    t.match({ state, failure }, { state: 'failed', failure: { code: 'diverged', retryable: false } });
    steps.push(
      /^step (\d+): (\d+) of the run's 20 steps were skipped/.exec(failure?.message ?? '')?.slice(1),
    );
  }
  t.strictSame(steps, [
    ['5', '5'],
    ['5', '5'],
  ]);
});

t.test("a job starts from another job's checkpoint", async (t) => {
  const optimizer = { type: 'adagrad' as const, lr: 1e-2 };
  const source = await run(t, tinyJob({ name: 'source', dataset, ranks: 3, train: { optimizer } }));
  const checkpoint = await lastCheckpoint(source);
  const from = new StoredState(stack.data_dir, checkpoint);
  type ParamGroups = NonNullable<NonNullable<NonNullable<JobSpec['train']>['optimizer']>['param_groups']>;
  type Restore = 'full' | 'weights' | 'weights_16bit';
  const begun = async (restore: Restore, ranks: number, paramGroups: ParamGroups) => {
    const initFrom = { checkpoint: checkpoint.id, restore };
    const train = { optimizer: { ...optimizer, param_groups: paramGroups } };
    const spec = tinyJob({ name: restore, dataset, ranks, steps: 2, train, init_from: initFrom });
    const job = await run(t, spec);
    const [event] = (await collect(client.jobs.events(job.id))).filter(({ type }) => type === 'init.loaded');
    t.match(event?.data, { checkpoint: checkpoint.id, job_id: source.id, restore, step: STEPS });
    return { job, stored: new StoredState(stack.data_dir, await lastCheckpoint(job)) };
  };

  await t.test('all of it', async (t) => {
    const [one, three] = await Promise.all([begun('full', 1, []), begun('full', 3, [])]);
    t.equal(one.job.export?.state_digest, three.job.export?.state_digest);
    t.match(one.stored.manifest, { step: 2, optimizer_steps: STEPS + 2 });
    // The sum of squares only grows, and after 40 steps it is far above the growth of two steps.
    const [before, after] = [from, one.stored].map((state) => state.read('sum', 'lm_head.weight'));
    t.ok(before && after?.every((sum, i) => sum >= (before[i] ?? Infinity)), 'the sums continue');
  });

  await t.test('the weights alone', async (t) => {
    // Neither group moves. A frozen parameter has no fp32 value.
    const groups = [
      { match: 'model.layers.*', frozen: true },
      { match: 'lm_head.weight', lr: 0 },
    ];
    const [one, three] = await Promise.all([begun('weights', 1, groups), begun('weights', 3, groups)]);
    t.equal(one.job.export?.state_digest, three.job.export?.state_digest);
    t.match(one.stored.manifest, { step: 2, optimizer_steps: 2 });
    const master = (state: StoredState, param: string) => Buffer.from(state.read('master', param).buffer);
    t.same(master(one.stored, 'lm_head.weight'), master(from, 'lm_head.weight'));
    const frozen = 'model.layers.1.mlp.up_proj.weight';
    t.same(master(one.stored, frozen), Buffer.from(roundedToBf16(from.read('master', frozen)).buffer));
    const [before, after] = [from, one.stored].map((state) => state.read('sum', 'lm_head.weight'));
    t.ok(
      after?.some((sum, i) => sum < (before?.[i] ?? 0)),
      'the optimizer was reset',
    );
  });

  await t.test('all of it with 16-bit weights', async (t) => {
    const still = [{ match: 'lm_head.weight', lr: 0 }];
    const [one, three] = await Promise.all([
      begun('weights_16bit', 1, still),
      begun('weights_16bit', 3, still),
    ]);
    t.equal(one.job.export?.state_digest, three.job.export?.state_digest);
    t.match(one.stored.manifest, { step: 2, optimizer_steps: STEPS + 2 });
    const rounded = roundedToBf16(from.read('master', 'lm_head.weight'));
    t.same(Buffer.from(one.stored.read('master', 'lm_head.weight').buffer), Buffer.from(rounded.buffer));
    const [before, after] = [from, one.stored].map((state) => state.read('sum', 'lm_head.weight'));
    t.ok(before && after?.every((sum, i) => sum >= (before[i] ?? Infinity)), 'the sums continue');
  });

  await t.test('another model or optimizer is refused when the job is created', async (t) => {
    const initFrom = { checkpoint: checkpoint.id, restore: 'full' as const };
    const other = tinyJob({
      name: 'other',
      dataset,
      init_from: initFrom,
      train: { optimizer: { type: 'lion' } },
    });
    await t.rejects(client.jobs.create(other), /422 .*\/model\/init_from\/restore/);
    const wider = { ...smallJob({ name: 'wider', dataset, steps: 2, ranks: 1 }) };
    wider.model = { ...wider.model, init_from: initFrom };
    await t.rejects(client.jobs.create(wider), /422 .*\/model\/init_from\/checkpoint/);
  });
});

t.test('a DeepSpeed configuration trains as the document that it stands for', async (t) => {
  const job = tinyJob({ name: 'deepspeed', dataset, ranks: 2 });
  const { steps, sequence_length, seed } = job.train ?? {};
  const imported: JobSpec = {
    ...job,
    train: { steps, sequence_length, seed } as JobSpec['train'],
    zero: {},
    deepspeed_config: {
      train_batch_size: 12,
      train_micro_batch_size_per_gpu: 2,
      optimizer: { type: 'AdamW', params: { lr: 0.002, betas: [0.9, 0.99], eps: 1e-7, weight_decay: 0.05 } },
      scheduler: {
        type: 'WarmupLR',
        params: { warmup_min_lr: 0, warmup_max_lr: 0.002, warmup_num_steps: 5, warmup_type: 'linear' },
      },
      bf16: { enabled: true },
      gradient_clipping: 0.5,
      zero_optimization: { stage: 2, reduce_bucket_size: 50_000 },
    },
  };
  const written = tinyJob({
    name: 'written',
    dataset,
    train: {
      optimizer: { type: 'adamw', lr: 0.002, betas: [0.9, 0.99], eps: 1e-7, weight_decay: 0.05 },
      lr_schedule: { type: 'constant', warmup_steps: 5 },
      gradient_clipping: 0.5,
    },
  });
  const [one, other] = await Promise.all([run(t, imported), run(t, written)]);
  t.equal(one.export?.state_digest, other.export?.state_digest);
});
