// Features of the native core beyond AdamW in bf16 that a job's document can request, through the addon.

import { join } from 'node:path';
import t from 'tap';
import type { Architecture } from '../../contracts/architecture.js';
import { paramTable, plainSettings, Trainer, type TrainerConfig } from './index.js';
import { connectWorld, tinyConfig, tinyTokens, tokenFile, worldDigest } from './testing.js';

const tokens = tinyTokens();
t.teardown(() => tokens.remove());
const config = tinyConfig(tokens.path);

t.test(
  'fp16, a dynamic loss scale, a frozen part, two lanes: the same on 1 and 2 ranks over Gloo',
  async (t) => {
    const settings = plainSettings('fp16');
    const fp16 = {
      ...config,
      precision: 'fp16' as const,
      loss_scale: { ...settings.loss_scale, initial_scale: 2 ** 40, hysteresis: 1 },
      param_groups: [{ match: 'model.embed*', lr_scale: 1, weight_decay: null, frozen: true }],
      zero: { ...config.zero, reduce_dtype: 'fp16' as const, stage: 1 as const, lanes: 2 },
    };
    const runs = [];
    for (const worldSize of [1, 2]) {
      const world = await connectWorld({ ...fp16, threads: worldSize }, worldSize);
      await Promise.all(world.map((trainer) => trainer.initialize()));
      const scales = [];
      const digests = [];
      for (let step = 0; step < 30; step++) {
        const [result] = await Promise.all(world.map((trainer) => trainer.step(0)));
        scales.push(result?.finite, result?.loss_scale);
        digests.push(worldDigest(world));
      }
      const { loss_scaler, skipped_steps } = await world[0]!.snapshot();
      t.ok(skipped_steps > 5 && skipped_steps < 30, 'the scale came down until steps were finite');
      t.equal(loss_scaler.scale, 2 ** (40 - skipped_steps));
      const { moments, master, lane_accumulator } = world[0]!.memory();
      t.equal(lane_accumulator, 4 * trained(fp16.model), 'one sum of all gradients that are trained');
      t.equal(moments, 2 * master);
      const masters = world.reduce((sum, trainer) => sum + trainer.memory().master, 0);
      t.equal(masters, 4 * trained(fp16.model), 'the frozen part has no master');
      for (const trainer of world) trainer.close();
      runs.push({ scales, digests });
    }
    t.same(runs[1], runs[0]);
  },
);

t.test('fp16: the usable loss scale is the same for any number of leaves', async (t) => {
  const settings = plainSettings('fp16');
  const lossScale = { ...settings.loss_scale, initial_scale: 2 ** 30, hysteresis: 1 };
  const endScale = async (microBatchSize: number, gradAccumDtype: 'fp16' | 'fp32') => {
    const zero = { ...config.zero, reduce_dtype: 'fp16' as const, grad_accum_dtype: gradAccumDtype };
    const trainer = Trainer.create(
      {
        ...config,
        precision: 'fp16',
        global_batch_size: 12,
        micro_batch_size: microBatchSize,
        loss_scale: lossScale,
        zero,
      },
      () => {},
    );
    await trainer.connect();
    await trainer.initialize();
    for (let step = 0; step < 30; step++) await trainer.step(0);
    const { loss_scaler, skipped_steps } = await trainer.snapshot();
    trainer.close();
    t.ok(skipped_steps > 5 && skipped_steps < 30, 'the scale came down until steps were finite');
    return loss_scaler.scale;
  };
  const whole = await endScale(12, 'fp16');
  for (const microBatchSize of [3, 1]) {
    t.equal(await endScale(microBatchSize, 'fp16'), whole, `${12 / microBatchSize} leaves`);
    t.ok((await endScale(microBatchSize, 'fp32')) >= whole, 'sums in fp32 do not overflow');
  }
});

t.test('the rate of a group of parameters alone, from a step on, on 1 and 2 ranks', async (t) => {
  const lrSchedule = { ...config.lr_schedule, type: 'constant' as const, warmup_steps: 0 };
  const [match, other] = ['lm_head*', 'model.norm*'];
  const digests = async (lrScale: number, overrides: TrainerConfig['overrides'], ranks = 1) => {
    const group = { lr_scale: 1, weight_decay: 0, frozen: false };
    const paramGroups = [
      { ...group, match, lr_scale: lrScale },
      { ...group, match: other },
    ];
    const world = await connectWorld(
      { ...config, lr_schedule: lrSchedule, param_groups: paramGroups, overrides },
      ranks,
    );
    await Promise.all(world.map((trainer) => trainer.initialize()));
    const found = [];
    for (let step = 0; step < 6; step++) {
      await Promise.all(world.map((trainer) => trainer.step(0)));
      found.push(worldDigest(world));
    }
    for (const trainer of world) trainer.close();
    return found;
  };
  const half = await digests(0.5, []);
  const plain = await digests(1, []);
  const rate = (step: number, lr: number | null) => ({ step, group_lr: { [match]: lr } });
  const lr = config.optimizer.lr / 2;
  t.strictSame(await digests(1, [rate(0, lr)]), half);
  const late = await digests(1, [rate(3, lr)]);
  t.strictSame(late.slice(0, 3), plain.slice(0, 3));
  t.not(late[3], plain[3]);
  t.strictSame(await digests(1, [rate(3, lr)], 2), late);
  t.strictSame(await digests(1, [rate(3, lr), rate(4, null)]).then((all) => all[3]), late[3]);
});

t.test('evaluation of two files: the same bits on 1 and 2 ranks over Gloo', async (t) => {
  const few = Array.from({ length: 17 * 5 + 1 }, (_, i) => (i * 11) % 101);
  const directory = t.testdir({ few: tokenFile(few, 17) });
  const evaluationFiles = [[tokens.path], [join(directory, 'few')]];
  const losses = [];
  for (const worldSize of [1, 2]) {
    const world = await connectWorld({ ...config, evaluation_files: evaluationFiles }, worldSize);
    const evaluate = (file: number) => Promise.all(world.map((trainer) => trainer.evaluate(file)));
    await Promise.all(world.map((trainer) => trainer.initialize()));
    const before = await evaluate(0);
    for (let step = 0; step < 5; step++) await Promise.all(world.map((trainer) => trainer.step(0)));
    const [after, other] = [await evaluate(0), await evaluate(1)];
    for (const trainer of world) trainer.close();
    t.match(before[0], { tokens: 24 * 17, sequences: 24 });
    t.match(other[0], { tokens: 5 * 17, sequences: 5 });
    t.ok(after[0]!.loss < before[0]!.loss, 'it learns');
    t.not(other[0]!.loss, after[0]!.loss);
    t.equal(new Set(after.map(({ loss }) => loss)).size, 1, 'every rank has the same');
    losses.push([before, after, other].map(([first]) => first!.loss));
  }
  t.same(losses[1], losses[0]);
  const plain = Trainer.create({ ...config, evaluation_files: [[tokens.path]] }, () => {});
  await plain.connect();
  await t.rejects(plain.evaluate(1), { code: 'no_evaluation_data' });
  plain.close();
});

/** Elements of all parameters but the embedding, padded to blocks. */
function trained(model: Architecture): number {
  const rows = paramTable(model).filter(({ name }) => !name.startsWith('model.embed'));
  return rows.reduce((sum, { num_blocks }) => sum + num_blocks * 4096, 0);
}

t.test('all of a state, its weights alone, or all with weights in 16 bits', async (t) => {
  const first = Trainer.create(config, () => {});
  await first.connect();
  await first.initialize();
  for (let step = 0; step < 3; step++) await first.step(0);
  const saved = await first.snapshot();
  const digests = [];
  for (const restore of ['full', 'weights', 'weights_16bit'] as const) {
    const trainer = Trainer.create(config, () => {});
    await trainer.connect();
    for (const slice of saved.slices) trainer.load(slice.state, slice.param, slice.begin, slice.data);
    await trainer.finishLoad({ ...saved, step: 0, restore });
    const after = await trainer.snapshot();
    t.equal(after.optimizer_steps, restore === 'weights' ? 0 : 3);
    const masters = after.slices.filter(({ state }) => state === 'master');
    const exact = masters.every(({ data }, i) => Buffer.from(data).equals(saved.slices[i]!.data));
    t.equal(exact, restore !== 'weights_16bit');
    const moments = after.slices.filter(({ state }) => state !== 'master');
    const zeros = moments.every(({ data }) => data.every((byte) => byte === 0));
    t.equal(zeros, restore === 'weights');
    digests.push(trainer.digestPart());
    trainer.close();
  }
  t.equal(digests[0], saved.digest_part);
  t.equal(new Set(digests).size, 3);
  first.close();
});

t.test(
  'a position is the same after it was loaded, and the loss scaler continues from it as configured',
  async (t) => {
    const position = {
      step: 7,
      optimizer_steps: 5,
      skipped_steps: 2,
      loss_scaler: {
        scale: 128,
        iteration: 7,
        last_overflow_iteration: 4,
        hysteresis: 2,
        skipped_in_a_row: 1,
      },
    };
    const settings = plainSettings('fp16');
    for (const consecutiveHysteresis of [true, false]) {
      const lossScale = {
        ...settings.loss_scale,
        hysteresis: 3,
        consecutive_hysteresis: consecutiveHysteresis,
      };
      const zero = { ...config.zero, reduce_dtype: 'fp16' as const };
      const trainer = Trainer.create({ ...config, precision: 'fp16', loss_scale: lossScale, zero }, () => {});
      await trainer.connect();
      await trainer.initialize();
      await trainer.finishLoad({ ...position, restore: 'full' });
      const snapshot = await trainer.snapshot();
      t.match(snapshot, position);
      snapshot.release();
      t.equal((await trainer.step(0)).finite, true);
      const { loss_scaler } = await trainer.snapshot();
      t.equal(loss_scaler.hysteresis, consecutiveHysteresis ? 3 : 2);
      t.equal(loss_scaler.iteration, 8);
      trainer.close();
    }
  },
);

t.test(
  'the rate comes from the overrides, else from the schedule; of a position, from its step',
  async (t) => {
    const overrides = [{ step: 1, lr: 0.5 }, { step: 2 }, { step: 3, lr: null }];
    const trainer = Trainer.create({ ...config, overrides }, () => {});
    await trainer.connect();
    await trainer.initialize();
    const schedule = (step: number) => (step < 3 ? (1e-2 * (step + 1)) / 3 : 1e-2);
    t.equal(trainer.lr(), schedule(0));
    t.equal((await trainer.step(0)).lr, schedule(0));
    t.equal((await trainer.step(0)).lr, 0.5);
    const snapshot = await trainer.snapshot();
    t.equal((await trainer.step(0)).lr, 0.5);
    t.equal((await trainer.step(0)).lr, schedule(3));
    await trainer.finishLoad({ ...snapshot, restore: 'full' });
    t.equal(trainer.lr(), 0.5);
    trainer.close();
  },
);

t.test(
  'trust ratios are those of LAMB, one entry per group; the auxiliary loss is that of models with routers',
  async (t) => {
    const firstStep = async (given: TrainerConfig) => {
      const trainer = Trainer.create(given, () => {});
      try {
        await trainer.connect();
        await trainer.initialize();
        return await trainer.step(0);
      } finally {
        trainer.close();
      }
    };
    t.match(await firstStep(config), { trust_ratios: [], aux_loss: null });
    const lamb = (fields: Partial<TrainerConfig['optimizer']>) =>
      firstStep({ ...config, optimizer: { ...config.optimizer, type: 'lamb', ...fields } });
    const { trust_ratios } = await lamb({ min_coeff: 1e-9, max_coeff: 1e9 });
    t.equal(trust_ratios.length, 2, 'matrices decay, norms do not');
    for (const { min, median, max } of trust_ratios) t.ok(0 < min && min <= median && median <= max);
    t.ok(trust_ratios.some(({ min, max }) => min < max));
    const bound = { min: 0.5, median: 0.5, max: 0.5 };
    t.strictSame((await lamb({ min_coeff: 0.5, max_coeff: 0.5 })).trust_ratios, [bound, bound]);
    const experts = {
      naming: 'mixtral',
      num_experts: 4,
      experts_per_token: 2,
      router_aux_loss_coef: 0.1,
    } as const;
    // The least that the loss can be is its factor, where all experts are chosen alike.
    t.ok(((await firstStep({ ...config, model: { ...config.model, ...experts } })).aux_loss ?? 0) > 0.09);
  },
);
