/** Experts distributed over ranks train over HTTP with real processes, bit-identical on any number of ranks. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { architectureOf, modelParams, presets } from '../../job-document/index.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';
import { StoredState } from '../support/stored-state.js';

const STEPS = 4;
const PARAMS = modelParams(architectureOf(presets['mixtral-tiny']));

let stack: TestStack;
let dataset: string;

function expertJob(ranks: number, changes: Partial<JobSpec> = {}): JobSpec {
  return {
    name: `experts on ${ranks}`,
    model: { preset: 'mixtral-tiny' },
    data: { dataset, validation_fraction: 0.01 },
    train: {
      steps: STEPS,
      sequence_length: 32,
      global_batch_size: 8,
      micro_batch_size: 1,
      evaluation: { every_steps: 2 },
    },
    zero: { expert_parallel_size: 2 },
    resources: { ranks: { preferred: ranks, max: 4 } },
    checkpoint: { every_steps: 2, keep: { last: 2 } },
    export: { dtype: 'fp32' },
    ...changes,
  };
}

async function trained(spec: JobSpec) {
  const { id } = await stack.client.jobs.create(spec);
  const job = await stack.client.jobs.until(id, () => false);
  if (!job.export) throw new Error(`${job.state} ${JSON.stringify(job.failure)}`);
  const data = await collect(stack.client.jobs.checkpoints(id));
  const last = data.find(({ step }) => step === job.progress.step);
  if (!last) throw new Error('the last step has no checkpoint');
  const { prefix } = job.export;
  return {
    checkpoint: last,
    state: new StoredState(stack.data_dir, last),
    file: (name: string) => readFileSync(join(stack.data_dir, 'objects', prefix, name)),
  };
}

t.before(async () => {
  stack = await startStack(t);
  dataset = (await stack.client.datasets.create('openapi', sampleText())).id;
});

t.test('two and four ranks: the same state, and an export with all experts', async (t) => {
  const two = await trained(expertJob(2));
  const four = await trained(expertJob(4));
  t.equal(two.checkpoint.world_size, 2);
  t.equal(four.checkpoint.world_size, 4);
  t.equal(four.checkpoint.state_digest, two.checkpoint.state_digest);
  const weights = two.file('model.safetensors');
  t.ok(weights.equals(four.file('model.safetensors')), 'the same export');
  const header = JSON.parse(weights.subarray(8, 8 + Number(weights.readBigUInt64LE(0))).toString('utf8'));
  for (const { name, shape } of PARAMS) t.same(header[name]?.shape, shape, name);
  // Each expert is only in the files of the ranks that own it.
  for (const [rank, tensors] of four.state.tensors.entries()) {
    const experts = new Set(tensors.map((name) => /experts\.(\d)\./.exec(name)?.[1]).filter(Boolean));
    t.same([...experts].sort(), rank % 2 === 0 ? ['0', '1'] : ['2', '3'], `shard ${rank}`);
  }
});

t.test('adapters over experts: the same state and export on two and four ranks', async (t) => {
  const train = { ...expertJob(2).train, adapter: { type: 'dora' as const, rank: 4, alpha: 16 } };
  const [two, four] = [await trained(expertJob(2, { train })), await trained(expertJob(4, { train }))];
  t.equal(four.checkpoint.state_digest, two.checkpoint.state_digest);
  t.ok(two.file('model.safetensors').equals(four.file('model.safetensors')));
  const expert = 'model.layers.0.block_sparse_moe.experts.3.w2';
  t.ok(
    two.state.read('master', `${expert}.lora_B.weight`).some((value) => value !== 0),
    'it is trained',
  );
  const norms = two.state.read('master', `${expert}.lora_magnitude_vector.weight`);
  t.ok(
    norms.every((value) => value > 0.1),
    'magnitudes begin as norms',
  );
});

t.test('paused on four ranks, resumed on two; its weights on one rank without sets', async (t) => {
  const train = { ...expertJob(2).train, steps: 40, evaluation: { every_steps: 20 } };
  const straight = await trained(expertJob(2, { train }));
  const { client } = stack;
  const { id } = await client.jobs.create(expertJob(4, { train, name: 'interrupted' }));
  await client.jobs.until(id, ({ progress }) => progress.step >= 1, { interval_ms: 20 });
  await client.jobs.pause(id);
  const paused = await client.jobs.until(id, ({ state }) => state === 'paused', { interval_ms: 20 });
  t.ok(paused.progress.step < 40, 'paused midway');
  await client.jobs.resume(id, { ranks: 2 });
  const job = await client.jobs.until(id, () => false);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  const data = await collect(client.jobs.checkpoints(id));
  t.equal(data.find(({ step }) => step === 40)?.state_digest, straight.checkpoint.state_digest);

  // One step with learning rate 0.
  const still = {
    ...expertJob(2).train,
    steps: 1,
    overrides: [{ step: 0, lr: 0 }],
    evaluation: { every_steps: 1 },
  };
  const model = {
    preset: 'mixtral-tiny' as const,
    init_from: { checkpoint: straight.checkpoint.id, restore: 'weights' as const },
  };
  const spread = await trained(expertJob(2, { model, train: still }));
  const whole = await trained(
    expertJob(1, { model, train: still, zero: {}, resources: { ranks: { preferred: 1 } } }),
  );
  const weights = straight.file('model.safetensors');
  t.ok(spread.file('model.safetensors').equals(weights), 'on two ranks, each with its experts');
  t.ok(whole.file('model.safetensors').equals(weights), 'on one rank, with all of them');
});
