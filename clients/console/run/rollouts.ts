/** Samples of a step of reinforcement learning, in numbers and words. */
import type { Rollout } from '../../../contracts/types.js';
import { count } from '../parts/format.js';

type Group = Rollout['groups'][number];
type Sample = Group['samples'][number];

/** A reward or a score in few digits. */
export const score = (value: number) => String(Number(value.toPrecision(3)));

export const meanReward = (samples: readonly Sample[]) =>
  samples.reduce((sum, { reward }) => sum + reward, 0) / Math.max(1, samples.length);

/** How a reward compares with the mean of its group; `equal` if all rewards of the group are the same. */
export function rankOf(sample: Sample, { samples }: Group): 'above' | 'below' | 'equal' {
  const difference = sample.reward - meanReward(samples);
  if (samples.every(({ reward }) => reward === sample.reward) || difference === 0) return 'equal';
  return difference > 0 ? 'above' : 'below';
}

/** `6 prompts · 36 answers · mean reward 0.417 · 2 truncated` */
export function summaryOf({ groups }: Rollout): string {
  const samples = groups.flatMap((group) => group.samples);
  const number = (of: (sample: Sample) => boolean) => samples.filter(of).length;
  const truncated = number((sample) => sample.truncated);
  const failed = number(({ errors }) => errors.length > 0);
  return [
    `${count(groups.length)} prompts`,
    `${count(samples.length)} answers`,
    `mean reward ${score(meanReward(samples))}`,
    truncated > 0 && `${count(truncated)} truncated`,
    failed > 0 && `${count(failed)} with failed graders`,
  ]
    .filter(Boolean)
    .join(' · ');
}

/** `12 tokens, truncated · exact 1, short 0` */
export function detailsOf({ tokens, truncated, scores }: Sample): string {
  const parts = Object.entries(scores).map(([name, value]) => `${name} ${score(value)}`);
  const length = `${count(tokens)} ${tokens === 1 ? 'token' : 'tokens'}${truncated ? ', truncated' : ''}`;
  return parts.length > 1 ? `${length} · ${parts.join(', ')}` : length;
}

export interface Steps {
  /** First step with the shown samples. */
  shown: number;
  /** Steps that share samples. */
  length: number;
  /** Completed steps of the run. */
  done: number;
}

/** Returns the step before the shown samples; null at the first ones. */
export const stepBefore = ({ shown, length }: Steps) => (shown > length ? shown - length : null);

/** Returns the step after the shown samples; null at the newest ones. */
export const stepAfter = ({ shown, length, done }: Steps) => (shown + length <= done ? shown + length : null);
