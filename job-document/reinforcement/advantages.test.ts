/** Against TRL: golden/make_golden_advantages.py. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { advantagesOf, deviationOf, meanOf, rewardedSamples, rowsOf, tokenFactors } from './advantages.js';

type Settings = Parameters<typeof rowsOf>[1];

interface Golden {
  group_size: number;
  max_tokens: number;
  rewards: number[];
  lengths: number[];
  clip: number;
  cases: (Pick<Settings, 'scale_rewards' | 'loss_type'> & {
    advantages: number[];
    /** (samples, max_tokens) */
    log_probs: number[][];
    drawn: number[][];
    base: number[][];
    beta: number;
    loss: number;
  })[];
}

const golden: Golden = JSON.parse(
  readFileSync(join(process.cwd(), 'job-document/reinforcement/golden/advantages.json'), 'utf8'),
);
/** TRL computes advantages in fp32. */
const FP32 = 1e-5;

const near = (found: number, wanted: number, tolerance: number) =>
  Math.abs(found - wanted) <= tolerance * Math.max(1, Math.abs(wanted));

for (const { scale_rewards, loss_type, beta, ...wanted } of golden.cases)
  t.test(`advantages and loss of TRL: ${scale_rewards}, ${loss_type}, beta ${beta}`, async (t) => {
    const { group_size, max_tokens, rewards, lengths, clip } = golden;
    const advantages = advantagesOf(rewards, { group_size, scale_rewards });
    for (const [i, advantage] of advantages.entries())
      t.ok(near(advantage, wanted.advantages[i] ?? Number.NaN, FP32), `advantage ${i}`);
    const factors = tokenFactors(lengths, { loss_type, max_tokens });
    let loss = 0;
    for (const [i, length] of lengths.entries())
      for (let at = 0; at < length; at += 1) {
        const logProb = wanted.log_probs[i]?.[at] ?? 0;
        const ratio = Math.exp(logProb - (wanted.drawn[i]?.[at] ?? 0));
        const difference = (wanted.base[i]?.[at] ?? 0) - logProb;
        const advantage = (wanted.advantages[i] ?? 0) * (factors[i] ?? 0);
        loss -= Math.min(ratio * advantage, Math.max(1 - clip, Math.min(1 + clip, ratio)) * advantage);
        loss += beta * (factors[i] ?? 0) * ratio * (Math.exp(difference) - difference - 1);
      }
    t.ok(near(loss, wanted.loss, FP32), `loss ${loss}, of TRL ${wanted.loss}`);
  });

t.test('rows have the prompt before the targets, and the factor in the advantage', async (t) => {
  const loss = { type: 'ppo' } as const;
  const settings = {
    group_size: 2,
    scale_rewards: 'none',
    loss_type: 'dapo',
    max_tokens: 4,
    loss,
  } as Settings;
  const samples = [
    { prompt: [1, 2], tokens: [3, 4, 5], log_probs: [-1, -2, -3], reward: 1 },
    { prompt: [1, 2], tokens: [6], log_probs: [-4], reward: 0 },
  ];
  t.same(rowsOf(samples, settings), [
    {
      tokens: [1, 2, 3, 4],
      targets: [-100, 3, 4, 5],
      log_probs: [0, -1, -2, -3],
      advantages: [0, 0.125, 0.125, 0.125],
    },
    { tokens: [1, 2], targets: [-100, 6], log_probs: [0, -4], advantages: [0, -0.125] },
  ]);
  const penalized = rowsOf(samples, { ...settings, loss: { ...loss, beta: 0.1 } });
  t.same(
    penalized.map(({ weights }) => weights),
    [
      [0, 0.25, 0.25, 0.25],
      [0, 0.25],
    ],
    'a penalty has the same divisor',
  );
});

t.test('a sample is cut at its end', async (t) => {
  const sample = { text: 'a', tokens: 1, truncated: false, reward: 0.5, scores: {}, errors: [] };
  const groups = [{ line: 1, prompt: 'p', samples: [sample, { ...sample, tokens: 2 }] }];
  const drawn = { tokens: [7, 8], log_probs: [-1, -2], finish: 'length' as const };
  t.same(rewardedSamples({ step: 1, call: 1, groups }, [[1]], [drawn, drawn]), [
    { prompt: [1], tokens: [7], log_probs: [-1], reward: 0.5 },
    { prompt: [1], tokens: [7, 8], log_probs: [-1, -2], reward: 0.5 },
  ]);
});

t.test('mean and deviation of a sample', async (t) => {
  t.equal(meanOf([1, 2, 3]), 2);
  t.equal(deviationOf([1, 2, 3]), 1);
});
