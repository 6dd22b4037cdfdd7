/**
 * Advantages and rows of samples (GRPO, Shao et al. 2024; Dr. GRPO, Liu et al. 2025; DAPO, Yu et al. 2025). The
 * losses of passes are sums, so an advantage and the weight of a penalty contain the divisor of the mean.
 */
import type { PassCall, Rollout, SampledRow } from '../../contracts/index.js';
import type { Reinforcement } from '../objective.js';

type Row = PassCall['rows'][number];

/** Added to a standard deviation, as in TRL. */
const EPSILON = 1e-4;
const NO_TARGET = -100;

/** Returns the advantage of each sample; those of a group follow each other. */
export function advantagesOf(
  rewards: readonly number[],
  { group_size, scale_rewards }: Pick<Reinforcement, 'group_size' | 'scale_rewards'>,
): number[] {
  const batch = scale_rewards === 'batch' ? deviationOf(rewards) : 0;
  return rewards.map((reward, i) => {
    const begin = i - (i % group_size);
    const group = rewards.slice(begin, begin + group_size);
    const advantage = reward - meanOf(group);
    if (scale_rewards === 'none') return advantage;
    return advantage / ((scale_rewards === 'group' ? deviationOf(group) : batch) + EPSILON);
  });
}

/** Returns the factor of each sample's token losses. @param lengths tokens of the samples */
export function tokenFactors(
  lengths: readonly number[],
  { loss_type, max_tokens }: Pick<Reinforcement, 'loss_type' | 'max_tokens'>,
): number[] {
  const all = lengths.reduce((sum, length) => sum + length, 0);
  return lengths.map((length) => {
    if (loss_type === 'dapo') return 1 / all;
    return 1 / (lengths.length * (loss_type === 'grpo' ? length : max_tokens));
  });
}

export interface RewardedSample {
  prompt: readonly number[];
  /** The sample, cut where its answer ends. */
  tokens: readonly number[];
  log_probs: SampledRow['log_probs'];
  reward: number;
}

/** Returns the samples as passes need them. */
export function rewardedSamples(
  { groups }: Rollout,
  prompts: readonly (readonly number[])[],
  samples: readonly SampledRow[],
): RewardedSample[] {
  const counted = groups.flatMap((group) => group.samples);
  return counted.map(({ tokens, reward }, i) => ({
    prompt: prompts[Math.floor((i * prompts.length) / counted.length)] ?? [],
    tokens: samples[i]?.tokens.slice(0, tokens) ?? [],
    log_probs: samples[i]?.log_probs.slice(0, tokens) ?? [],
    reward,
  }));
}

/** Returns the rows of all samples of a rollout. */
export function rowsOf(samples: readonly RewardedSample[], settings: Reinforcement): Row[] {
  const advantages = advantagesOf(
    samples.map(({ reward }) => reward),
    settings,
  );
  const factors = tokenFactors(
    samples.map(({ tokens }) => tokens.length),
    settings,
  );
  return samples.map((sample, i) => {
    const factor = factors[i] ?? 0;
    return rowOf(sample, (advantages[i] ?? 0) * factor, (settings.loss.beta ?? 0) > 0 ? factor : null);
  });
}

/** @param weight of the penalty of a token; null without a penalty */
function rowOf({ prompt, tokens, log_probs }: RewardedSample, advantage: number, weight: number | null): Row {
  const before = prompt.length - 1;
  const behind = <T>(empty: T, values: readonly T[]): T[] => [...Array<T>(before).fill(empty), ...values];
  return {
    tokens: [...prompt, ...tokens.slice(0, -1)],
    targets: behind(NO_TARGET, tokens),
    // A sample of a model whose numbers are not finite has none; the driver ends the job before.
    log_probs: behind(
      0,
      tokens.map((_, i) => log_probs[i] ?? 0),
    ),
    advantages: behind(
      0,
      tokens.map(() => advantage),
    ),
    ...(weight !== null && {
      weights: behind(
        0,
        tokens.map(() => weight),
      ),
    }),
  };
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Returns the standard deviation of a sample. */
export function deviationOf(values: readonly number[]): number {
  const mean = meanOf(values);
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1));
}
