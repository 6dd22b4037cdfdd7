import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { addon } from './addon.js';
import {
  castTo16Bit,
  digestValues,
  fingerprint,
  type OptimizerConfig,
  paramTable,
  quantizedValues,
  type Snapshot,
  stateNames,
  Trainer,
} from './index.js';
import { cpuIsa } from './info.js';
import { connectWorld, RANKS_ADDRESS, tinyConfig, tinyTokens, worldDigest } from './testing.js';

const tokens = tinyTokens();
t.teardown(() => tokens.remove());
const config = tinyConfig(tokens.path);

async function soloDigests(steps: number): Promise<string[]> {
  const trainer = Trainer.create(config, () => {});
  await trainer.connect();
  await trainer.initialize();
  const digests: string[] = [];
  for (let step = 0; step < steps; step++) {
    await trainer.step(0);
    digests.push(worldDigest([trainer]));
  }
  trainer.close();
  return digests;
}

/** Digests after each step of a world over Gloo; at step 3 one rank raises a flag, which all must see. */
async function worldDigests(t: Test, worldSize: number, threads: number, steps: number): Promise<string[]> {
  const world = await connectWorld({ ...config, threads }, worldSize);
  await Promise.all(world.map((trainer) => trainer.initialize()));
  const digests: string[] = [];
  for (let step = 0; step < steps; step++) {
    const raises = (rank: number) => step === 3 && rank === worldSize - 1;
    const results = await Promise.all(world.map((trainer, rank) => trainer.step(raises(rank) ? 4 : 0)));
    t.ok(
      results.every((result) => result.stop === (step === 3 ? 4 : 0)),
      'flags reach all ranks in one step',
    );
    t.equal(new Set(results.map((result) => result.loss)).size, 1, 'all ranks report the same loss');
    digests.push(worldDigest(world));
  }
  for (const trainer of world) trainer.close();
  return digests;
}

t.test('1 to 4 ranks over Gloo, 1 or 2 threads each: the same digest after each of 20 steps', async (t) => {
  const steps = config.steps;
  const expected = await soloDigests(steps);
  t.equal(new Set(expected).size, steps, 'every step changes the state');
  for (const worldSize of [1, 2, 3, 4]) {
    for (const threads of [1, 2]) {
      const digests = await worldDigests(t, worldSize, threads, steps);
      t.same(digests, expected, `${worldSize} ranks with ${threads} threads`);
    }
  }
});

t.test('snapshots of 2 ranks, loaded by 3, go on with the same bits', async (t) => {
  const expected = await soloDigests(6);
  const before = await connectWorld(config, 2);
  await Promise.all(before.map((trainer) => trainer.initialize()));
  for (let step = 0; step < 4; step++) await Promise.all(before.map((trainer) => trainer.step(0)));
  const snapshots = await Promise.all(before.map((trainer) => trainer.snapshot()));
  t.equal(worldDigest(before), expected[3]);
  // The copies must not move on with the training.
  await Promise.all(before.map((trainer) => trainer.step(0)));

  const after = await connectWorld(config, 3);
  for (const trainer of after) load(trainer, snapshots);
  const position = snapshots[0] as Snapshot;
  await Promise.all(after.map((trainer) => trainer.finishLoad({ ...position, restore: 'full' })));
  t.equal(worldDigest(after), expected[3]);
  for (let i = 0; i < 2; i++) await Promise.all(after.map((trainer) => trainer.step(0)));
  t.equal(worldDigest(after), expected[5]);
  for (const trainer of [...before, ...after]) trainer.close();
});

/** Copies from the snapshots of all ranks whatever `trainer` owns. */
function load(trainer: Trainer, snapshots: Snapshot[]): void {
  for (const owned of trainer.slices()) {
    for (const slice of snapshots.flatMap((snapshot) => snapshot.slices)) {
      const begin = Math.max(owned.begin, slice.begin);
      const end = Math.min(owned.end, slice.end);
      if (slice.param !== owned.param || begin >= end) continue;
      const bytes = slice.data.subarray((begin - slice.begin) * 4, (end - slice.begin) * 4);
      trainer.load(slice.state, slice.param, begin, bytes);
    }
  }
}

t.test('a snapshot whose memory was prepared holds the same, at once and later', async (t) => {
  const trainers = await connectWorld(config, 2);
  const [prepared, plain] = trainers as [Trainer, Trainer];
  const contents = ({ slices }: Snapshot) => Buffer.concat(slices.map(({ data }) => data));
  await Promise.all(trainers.map((trainer) => trainer.initialize()));
  const other = await connectWorld(config, 2);
  await Promise.all(other.map((trainer) => trainer.initialize()));
  prepared.prepareSnapshot();
  prepared.prepareSnapshot();
  const [atOnce, expected] = [await prepared.snapshot(), await (other[0] as Trainer).snapshot()];
  t.ok(contents(atOnce).equals(contents(expected)));
  plain.prepareSnapshot();
  for (const world of [trainers, other]) await Promise.all(world.map((trainer) => trainer.step(0)));
  const [later, wanted] = [await plain.snapshot(), await (other[1] as Trainer).snapshot()];
  t.ok(contents(later).equals(contents(wanted)));
  for (const trainer of [...trainers, ...other]) trainer.close();
  t.throws(() => prepared.prepareSnapshot(), { code: 'closed' });
});

t.test('the digest of values is that of the rank that has them', async (t) => {
  const trainer = Trainer.create(config, () => {});
  await trainer.connect();
  await trainer.initialize();
  await trainer.step(0);
  const { slices, release } = await trainer.snapshot();
  const table = paramTable(config.model);
  const parts = slices.map(({ state, param, begin, data }) => {
    t.equal(begin % 4096, 0);
    return BigInt(`0x${digestValues(state, (table[param]?.first_block ?? 0) + begin / 4096, data)}`);
  });
  const sum = parts.reduce((total, part) => total + part, 0n) % 2n ** 128n;
  t.equal(sum.toString(16).padStart(32, '0'), worldDigest([trainer]));
  release();
  trainer.close();
  t.throws(() => digestValues('grad' as never, 0, new Uint8Array(4)), { name: 'NativeError' });
});

t.test('operations are one at a time and snapshots at most two', async (t) => {
  const trainer = Trainer.create(config, () => {});
  await t.rejects(trainer.step(0), { name: 'NativeError', code: 'not_connected' });
  await trainer.connect();
  await trainer.initialize();
  const running = trainer.step(0);
  // At once: a step is short.
  const refused = trainer.step(0);
  t.throws(() => trainer.digestPart(), { code: 'busy' });
  await t.rejects(refused, { code: 'busy' });
  await running;
  const [first, second] = [await trainer.snapshot(), await trainer.snapshot()];
  await t.rejects(trainer.snapshot(), { code: 'snapshot_busy' });
  first.release();
  first.release();
  const third = await trainer.snapshot();
  await t.rejects(
    trainer.snapshot(),
    { code: 'snapshot_busy' },
    'a second release of the same snapshot frees nothing',
  );
  second.release();
  third.release();
  trainer.close();
  trainer.close();
  await t.rejects(trainer.step(0), { code: 'closed' });
});

t.test('an exception of the standard library is an error of its call', async (t) => {
  const trainer = new (addon().Trainer)({ ...config, cpu_isa: cpuIsa() }, () => {});
  t.throws(() => trainer.releaseSnapshot(99), { code: 'internal' });
  await trainer.close();
});

t.test('invalid configurations are refused with a code', async (t) => {
  const create = (changes: object) => () => Trainer.create({ ...config, ...changes }, () => {});
  t.throws(create({ micro_batch_size: 4 }), { name: 'NativeError', code: 'micro_batch_not_divisor' });
  t.throws(create({ world_size: 8 }), { code: 'too_many_ranks' });
  t.throws(create({ sequence_length: 65 }), { code: 'sequence_longer_than_model' });
  t.throws(create({ model: { ...config.model, num_key_value_heads: 3 } }), { code: 'invalid_model_config' });
  const { zero, lr_schedule, loss_scale } = config;
  t.throws(create({ zero: { ...zero, stage: 1, lanes: 8 } }), { code: 'invalid_argument', message: /lanes/ });
  t.throws(create({ zero: { ...zero, stage: 1, lanes: 2 }, world_size: 3 }), { code: 'too_many_ranks' });
  t.throws(create({ lr_schedule: { ...lr_schedule, type: 'wsd' } }), { message: /decay_steps/ });
  t.throws(create({ loss_scale: { ...loss_scale, max_skipped_steps: 0 } }), { message: /max_skipped_steps/ });
  t.throws(create({ overrides: [{ step: 2 }, { step: 1 }] }), { message: /ascend/ });
  t.throws(create({ zero: { ...zero, expert_parallel_size: 2 } }), { code: 'model_has_no_experts' });
  t.throws(create({ zero: { ...zero, master_dtype: 'fp16' } }), { message: /master_dtype/ });
  t.throws(create({ zero: { ...zero, offload: 'disk' } }), { message: /offload cannot be 'disk'/ });
  const group = { match: 'nothing.*', lr_scale: 1, weight_decay: null, frozen: false };
  t.throws(create({ param_groups: [group] }), { code: 'param_group_unmatched', message: /nothing/ });
  t.throws(create({ param_groups: [{ ...group, match: '*', frozen: true }] }), {
    code: 'all_parameters_frozen',
  });
  t.throws(create({ training_files: 7 }), { code: 'internal', message: /training_files/ });
  const missing = Trainer.create(
    { ...config, training_files: [{ path: `${tokens.path}.missing`, weight: 1 }] },
    () => {},
  );
  await t.rejects(missing.connect(), { code: 'token_file_unreadable' });
});

t.test('a rank whose peer never comes gives up with comm_timeout', async (t) => {
  const comm = { backend: 'gloo' as const, bind_address: RANKS_ADDRESS, timeout_ms: 300 };
  const lonely = Trainer.create({ ...config, world_size: 2, comm }, () => {});
  await t.rejects(lonely.connect(), { code: 'comm_timeout' });
  lonely.close();
});

t.test('a trainer can be closed while it connects, and while it waits in a step', async (t) => {
  const comm = { backend: 'gloo' as const, bind_address: RANKS_ADDRESS, timeout_ms: 60_000 };
  for (let repeat = 0; repeat < 20; repeat++) {
    const lonely = Trainer.create({ ...config, world_size: 2, comm }, () => {});
    const connected = t.rejects(lonely.connect(), { code: /comm_failed|closed/ });
    // Some of them have published their address by now, the others have no peer to publish it to.
    if (repeat % 2) await setImmediate();
    await lonely.close();
    await connected;
  }
  const [waiting, other] = (await connectWorld({ ...config, comm }, 2)) as [Trainer, Trainer];
  await Promise.all([waiting.initialize(), other.initialize()]);
  const step = t.rejects(waiting.step(0), { code: 'comm_failed' });
  await waiting.close();
  await step;
  await t.rejects(waiting.step(0), { code: 'closed' });
  await waiting.close();
  await other.close();
});

t.test('a rank whose peer is gone gets comm_failed', async (t) => {
  const [first, second] = (await connectWorld(config, 2)) as [Trainer, Trainer];
  await Promise.all([first.initialize(), second.initialize()]);
  second.close();
  await t.rejects(first.step(0), { code: 'comm_failed' });
  first.close();
});

t.test('states of each optimizer', (t) => {
  const statesOf = (optimizer: Partial<OptimizerConfig>) =>
    stateNames({ ...config, optimizer: { ...config.optimizer, ...optimizer } });
  t.same(statesOf({}), ['master', 'exp_avg', 'exp_avg_sq']);
  t.same(stateNames({ ...config, ema: { decay: 0.5 } }), ['master', 'exp_avg', 'exp_avg_sq', 'ema']);
  t.same(statesOf({ type: 'lion' }), ['master', 'exp_avg']);
  t.same(statesOf({ type: 'sgd' }), ['master', 'momentum_buffer']);
  t.same(statesOf({ type: 'adagrad', eps: 1e-10 }), ['master', 'sum']);
  t.throws(() => statesOf({ type: 'adadelta' as OptimizerConfig['type'] }), {
    code: 'invalid_argument',
    message: /adadelta/,
  });
  t.end();
});

t.test('the parameter table, the cast and the fingerprint', (t) => {
  const table = paramTable(config.model);
  t.equal(table[0]?.name, 'model.embed_tokens.weight');
  t.same(table[0]?.shape, [101, 48]);
  t.equal(table.at(-1)?.name, 'lm_head.weight');
  let block = 0;
  for (const row of table) {
    t.equal(row.first_block, block);
    t.equal(row.num_blocks, Math.ceil(row.numel / 4096));
    block += row.num_blocks;
  }
  const values = Float32Array.of(1, -2.5, 1.00390625, 1.01171875, Number.NaN);
  const bytes = new Uint8Array(values.buffer);
  const cast = castTo16Bit('bf16', bytes);
  const bits = Array.from(new Uint16Array(cast.buffer, cast.byteOffset, 5));
  t.same(bits.slice(0, 4), [0x3f80, 0xc020, 0x3f80, 0x3f82], 'ties go to even');
  const halves = castTo16Bit('fp16', bytes);
  t.same(Array.from(new Uint16Array(halves.buffer, halves.byteOffset, 4)), [0x3c00, 0xc100, 0x3c04, 0x3c0c]);
  const large = new Uint8Array(Float32Array.of(65519, 65520).buffer);
  t.throws(() => castTo16Bit('fp16', large), { code: 'weight_out_of_range', message: /65520/ });
  t.equal(castTo16Bit('fp16', large.subarray(0, 4)).length, 2, 'what rounds to the largest fp16');
  t.match(fingerprint(), /^cpu-[a-z0-9-]+\/\d+$/);
  t.end();
});

t.test(
  'a quantized matrix is restored from codes: levels are exact, and what lies between is rounded to one',
  async (t) => {
    const matrix = { format: 'nf4', precision: 'fp32', rows: 1, columns: 6 } as const;
    const given = Float32Array.of(-1, 0, 0.33791524171829224, 0.44, 0.3, 1);
    const fp32 = quantizedValues(matrix, new Uint8Array(given.buffer));
    const [level, next] = [0.33791524171829224, 0.44070982933044434].map(Math.fround);
    t.same([...new Float32Array(fp32.buffer)], [-1, 0, level, next, level, 1]);
    t.throws(() => quantizedValues({ ...matrix, rows: 2 }, fp32), { code: 'invalid_argument' });
  },
);
