import t from 'tap';
import type { OptimStep, PassLoss, PassRows, SampleRequest } from './passes.js';
import { closeWorld, connectWorld, tinyConfig, worldDigest } from './testing.js';
import { Trainer } from './trainer.js';

const config = { ...tinyConfig(''), session: true, training_files: [], global_batch_size: 8 };
const UPDATE: OptimStep = {
  lr: 1e-2,
  betas: [0.9, 0.95],
  eps: 1e-8,
  weight_decay: 0.1,
  gradient_clipping: 1,
};
const PPO: PassLoss = { type: 'ppo', clip_low: 0.2, clip_high: 0.28, beta: 0 };

/** Rows of several lengths; the first token of each has no target. */
function rows(count: number): PassRows {
  const lengths = Int32Array.from({ length: count }, (_, row) => 3 + ((row * 5) % 14));
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const starts = new Set([...lengths].map((_, row) => lengths.slice(0, row).reduce((sum, n) => sum + n, 0)));
  const number = (i: number) => (i * 37 + 11) % 101;
  return {
    lengths,
    tokens: Int32Array.from({ length: total }, (_, i) => number(i)),
    targets: Int32Array.from({ length: total }, (_, i) => (starts.has(i) ? -100 : number(i + 1))),
  };
}

/** The same with what policy losses read. */
function policyRows(count: number): PassRows {
  const plain = rows(count);
  const logProbs = Float32Array.from(plain.tokens, (_, i) => -4.6 + (i % 5) / 10);
  return {
    ...plain,
    log_probs: logProbs,
    advantages: Float32Array.from(plain.tokens, (_, i) => (i % 3) - 1),
  };
}

const REQUESTS: SampleRequest[] = [1, 2, 3].map((seed) => ({
  prompt: Int32Array.of(seed, 7),
  max_tokens: 4,
  temperature: seed === 3 ? 0 : 1,
  top_p: 1,
  top_k: 0,
  seed,
  stop_tokens: Int32Array.of(),
}));

/** Runs two steps with everything in between on every rank. Returns what all ranks saw, and the digests. */
async function session(worldSize: number): Promise<unknown[]> {
  const world = await connectWorld(config, worldSize);
  const seen: unknown[] = [];
  const together = async <T>(call: (trainer: Trainer) => Promise<T>): Promise<T> => {
    const results = await Promise.all(world.map(call));
    for (const result of results) t.same(result, results[0], 'equal on every rank');
    return results[0] as T;
  };
  await Promise.all(world.map((trainer) => trainer.initialize()));
  for (const count of [8, 1]) {
    seen.push(await together((trainer) => trainer.forwardBackward(PPO, policyRows(count))));
    seen.push(await together((trainer) => trainer.forwardBackward({ type: 'cross_entropy' }, rows(3))));
    seen.push(await together((trainer) => trainer.forward({ type: 'cross_entropy' }, rows(3))));
    const steps = await Promise.all(world.map((trainer) => trainer.optimStep(UPDATE)));
    seen.push(
      steps.map(({ step, loss, grad_norm, tokens, finite }) => [step, loss, grad_norm, tokens, finite])[0],
    );
    seen.push(await together((trainer) => trainer.sample(REQUESTS)), worldDigest(world));
  }
  await closeWorld(world);
  return seen;
}

t.test('results and digests of a session are equal on 1, 2 and 3 ranks', async (t) => {
  const expected = await session(1);
  t.same(await session(2), expected);
  t.same(await session(3), expected);
  t.not(expected[5], expected[11]);
});

async function solo(): Promise<Trainer> {
  const trainer = Trainer.create(config, () => {});
  await trainer.connect();
  await trainer.initialize();
  return trainer;
}

t.test('results have their fields', async (t) => {
  const trainer = await solo();
  const plain = rows(4);
  const weights = Float32Array.from(plain.tokens, () => 1);
  const pass = await trainer.forwardBackward({ type: 'cross_entropy' }, { ...plain, weights });
  t.equal(pass.num_targets, plain.targets.filter((target) => target >= 0).length);
  t.ok(pass.log_probs.every((value, i) => Number.isNaN(value) === (plain.targets[i] as number) < 0));
  const sum = pass.log_probs.reduce((total, value) => total + (Number.isNaN(value) ? 0 : value), 0);
  t.ok(Math.abs(pass.loss + sum) < 1e-3);
  t.same(pass.metrics, {});
  const { advantages, ...pairs } = policyRows(2);
  const dpo = await trainer.forward({ type: 'dpo', beta: 0.1 }, pairs);
  t.same(Object.keys(dpo.metrics).sort(), ['accuracy', 'margin', 'reward_chosen', 'reward_rejected']);
  const policy = await trainer.forward(PPO, policyRows(2));
  t.same(Object.keys(policy.metrics).sort(), ['clipped_share', 'ratio_mean']);
  const step = await trainer.optimStep(UPDATE);
  t.match(step, { step: 1, loss: pass.loss, tokens: pass.num_targets, lr: 1e-2, finite: true, stop: 0 });
  const [first] = await trainer.sample(REQUESTS);
  const stop = first?.tokens[1] as number;
  const ended = await trainer.sample([
    { ...(REQUESTS[0] as SampleRequest), stop_tokens: Int32Array.of(stop) },
  ]);
  t.equal(ended[0]?.finish, 'end');
  t.equal(ended[0]?.tokens.at(-1), stop);
  t.equal(first?.finish, 'length');
  t.equal(first?.log_probs.length, 4);
  await trainer.close();
});

t.test('copies of weights for samples stay until the next update', async (t) => {
  const trainer = await solo();
  const packed = () => trainer.memory().packed_weights;
  await trainer.forwardBackward({ type: 'cross_entropy' }, rows(4));
  const before = packed();
  await trainer.sample(REQUESTS);
  const copied = packed();
  t.ok(copied > before, `${copied} of ${before}`);
  await trainer.sample(REQUESTS);
  t.equal(packed(), copied);
  await trainer.optimStep(UPDATE);
  t.equal(packed(), before);
  await trainer.close();
});

t.test('calls that cannot be are refused by code', async (t) => {
  const trainer = await solo();
  await t.rejects(trainer.optimStep(UPDATE), { code: 'no_gradients' });
  await t.rejects(trainer.forward(PPO, rows(2)), { code: 'invalid_argument', message: /log_probs/ });
  await t.rejects(trainer.forward({ type: 'cross_entropy' }, rows(9)), { message: /global_batch_size/ });
  await t.rejects(trainer.forward({ type: 'hinge' } as never, rows(2)), { message: /hinge/ });
  await t.rejects(trainer.forward(PPO, { ...policyRows(2), tokens: [] } as never), { message: /Int32Array/ });
  await t.rejects(trainer.step(0), { code: 'invalid_argument', message: /session/ });
  await trainer.close();
  const plain = Trainer.create({ ...config, session: false, training_files: [] }, () => {});
  await t.rejects(plain.connect(), { code: 'invalid_argument' });
  await plain.close();
});
