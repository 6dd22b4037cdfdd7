import type { UnitName } from '../../parts/chart-units.js';
import { bytes, compact, portion } from '../../parts/format.js';
import { EVAL_REWARD, PHASES } from './curve.js';

/** Values of a run that are drawn together. */
export interface ChartGroup {
  title: string;
  has(name: string): boolean;
  /** Name of a curve where the title says the rest. */
  label?(name: string): string;
  format?: (value: number) => string;
  unit?: UnitName;
  /** The chart is left out if all values are this one. */
  quiet?: number;
}

const only = (wanted: string) => (name: string) => name === wanted;
const digits = (value: number) => value.toPrecision(4);
/** Curves whose names differ after a prefix. */
const of = (title: string, prefix: string, more: Partial<ChartGroup> = {}): ChartGroup => ({
  title,
  has: (name) => name.startsWith(prefix),
  label: (name) => name.slice(prefix.length),
  format: digits,
  ...more,
});

const PREFERENCES: readonly ChartGroup[] = [
  { title: 'Margin', has: only('margin'), format: digits },
  { title: 'Accuracy', has: only('accuracy'), format: (value) => portion(value) },
  of('Rewards', 'reward_'),
  of('Log-probabilities', 'log_prob_'),
];

const PREFIX = 'samples/';
const ofSamples = (title: string, names: readonly string[], more: Partial<ChartGroup> = {}) =>
  of(title, PREFIX, { has: (name) => names.some((each) => name === PREFIX + each), ...more });
const SHARES = ['truncated_share', 'failed_share', 'equal_groups', 'clipped_share'];

const REINFORCEMENT: readonly ChartGroup[] = [
  {
    title: 'Reward',
    has: (name) =>
      ['reward', 'reward_std'].some((each) => name === PREFIX + each) || name.startsWith(EVAL_REWARD),
    label: (name) => (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name),
    format: digits,
  },
  of('Scores', `${PREFIX}score/`),
  ofSamples('Shares of samples', SHARES, { format: (value) => portion(value) }),
  ofSamples('Tokens of a sample', ['tokens']),
  ofSamples('Entropy', ['entropy']),
  ofSamples('Ratio', ['ratio_mean']),
  ofSamples('KL divergence', ['kl']),
];

export const GROUPS: readonly ChartGroup[] = [
  {
    title: 'Loss',
    has: (name) => name === 'loss' || (name.startsWith('eval ') && !name.startsWith(EVAL_REWARD)),
    format: digits,
  },
  { title: 'Router loss', has: only('aux_loss'), format: digits },
  ...PREFERENCES,
  ...REINFORCEMENT,
  { title: 'Rate', has: only('lr'), format: digits },
  { title: 'Gradient norm', has: only('grad_norm'), format: digits },
  { title: 'Tokens per second', has: only('tokens_per_second'), format: compact },
  { title: 'Seconds of a step', has: (name) => (PHASES as readonly string[]).includes(name), format: digits },
  { title: 'Memory', has: only('memory'), unit: 'bytes' },
  { title: 'Ranks', has: only('ranks'), unit: 'whole' },
  of('Busy cores by rank', 'cpu of '),
  of('Busy GPU by rank', 'gpu of ', { format: (value) => portion(value) }),
  of('Memory by rank', 'memory_bytes of ', { unit: 'bytes', format: bytes }),
  of('Sent by rank, per second', 'sent_bytes of ', { unit: 'bytes', format: bytes }),
  { title: 'Loss scale', has: only('loss_scale'), format: compact, quiet: 1 },
  { title: 'Skipped steps', has: only('skipped_steps'), unit: 'whole', quiet: 0 },
];

/** Returns how a value is drawn. */
export function formatOf(name: string): Pick<ChartGroup, 'format' | 'unit'> {
  const { format, unit } = GROUPS.find(({ has }) => has(name)) ?? {};
  return { ...(format && { format }), ...(unit && { unit }) };
}
