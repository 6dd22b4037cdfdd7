import t from 'tap';
import type { StoredCall } from '../../../contracts/index.js';
import { mixedSeed } from '../../../platform/seeds.js';
import { passAnswer, passRows, sampleAnswer, sampleRequests } from './pass-rows.js';

t.test(
  'rows are joined one behind the other; a list that only some rows have is 1 in the others',
  async (t) => {
    const rows = passRows([
      { tokens: [1, 2, 3], targets: [2, 3, -100], weights: [0.5, 0.25, 0] },
      { tokens: [4], targets: [5] },
    ]);
    t.strictSame(rows, {
      lengths: Int32Array.of(3, 1),
      tokens: Int32Array.of(1, 2, 3, 4),
      targets: Int32Array.of(2, 3, -100, 5),
      weights: Float32Array.of(0.5, 0.25, 0, 1),
    });
  },
);

t.test(
  'an answer has the log-probabilities of each row, and null for those that JSON does not have',
  async (t) => {
    const { lengths, ...rows } = passRows([
      { tokens: [1, 2], targets: [2, -100] },
      { tokens: [4], targets: [5] },
    ]);
    const result = {
      loss: Number.POSITIVE_INFINITY,
      num_targets: 2,
      log_probs: Float32Array.of(-0.1, Number.NaN, -2),
      metrics: { ratio_mean: Number.NaN, clipped_share: 0.5 },
    };
    t.strictSame(passAnswer(result, { lengths, ...rows }), {
      loss: null,
      num_targets: 2,
      log_probs: [[Math.fround(-0.1), null], [-2]],
      metrics: { ratio_mean: null, clipped_share: 0.5 },
    });
  },
);

t.test('samples are in the order of the prompts, each with a seed of its own', async (t) => {
  const call = {
    type: 'sample',
    prompts: [[5, 6], [7]],
    n: 2,
    max_tokens: 3,
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    seed: 9,
    stop_tokens: [2],
    stop_texts: [],
  } satisfies StoredCall;
  const requests = sampleRequests(call);
  const common = { max_tokens: 3, temperature: 0.5, top_p: 0.9, top_k: 40, stop_tokens: Int32Array.of(2) };
  t.strictSame(requests, [
    { ...common, prompt: Int32Array.of(5, 6), seed: mixedSeed(9, 0) },
    { ...common, prompt: Int32Array.of(5, 6), seed: mixedSeed(9, 1) },
    { ...common, prompt: Int32Array.of(7), seed: mixedSeed(9, 2) },
    { ...common, prompt: Int32Array.of(7), seed: mixedSeed(9, 3) },
  ]);
  const seeds = [9, 10, 11].flatMap((seed) => sampleRequests({ ...call, seed }).map((one) => one.seed));
  t.equal(new Set(seeds).size, 12, 'calls with neighbouring seeds share none');
  const answer = {
    tokens: Int32Array.of(1, 2),
    log_probs: Float32Array.of(-1, -0.5),
    finish: 'end',
  } as const;
  t.strictSame(sampleAnswer([answer]), {
    samples: [{ tokens: [1, 2], log_probs: [-1, -0.5], finish: 'end' }],
  });
});
