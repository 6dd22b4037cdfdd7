/**
 * DeepSpeed's three batch sizes: train_batch_size = train_micro_batch_size_per_gpu ×
 * gradient_accumulation_steps × GPUs. Two of them determine the third. `resources.ranks.preferred` stands for
 * the number of GPUs; the result is one pair of sizes, with which the job trains on any number of ranks.
 */
import { keyError, type Setting, type Source, type Translated } from './settings.js';

const TOTAL = 'train_batch_size';
const MICRO = 'train_micro_batch_size_per_gpu';
const STEPS = 'gradient_accumulation_steps';

export function translateBatch(source: Source): Translated {
  const given = [TOTAL, MICRO, STEPS].filter((key) => source.get(key) !== undefined);
  const low = given.find((key) => (source.get<number>(key) ?? 1) < 1);
  if (low !== undefined) return { settings: [], errors: [keyError(low, 'out_of_range', 'must be >= 1')] };
  const [first] = given;
  // Without any of the keys the document's own sizes apply, or their defaults.
  if (first === undefined) return { settings: [], errors: [] };

  const sizes = solve(source);
  if (!Number.isInteger(sizes.total) || !Number.isInteger(sizes.micro) || !Number.isInteger(sizes.steps))
    return mismatch(source, first);
  if (sizes.total !== sizes.micro * sizes.steps * source.ranks) return mismatch(source, first);
  const from = (key: string) => (source.get(key) === undefined ? first : key);
  const settings: Setting[] = [
    { field: '/train/global_batch_size', value: sizes.total, from: from(TOTAL) },
    { field: '/train/micro_batch_size', value: sizes.micro, from: from(MICRO) },
  ];
  return { settings, errors: [] };
}

/** Computes the three sizes; a derived size is a fraction when they do not fit. */
function solve(source: Source): { total: number; micro: number; steps: number } {
  const { own, ranks } = source;
  const total = source.get<number>(TOTAL) ?? numberOf(own.train?.global_batch_size);
  const micro = source.get<number>(MICRO) ?? numberOf(own.train?.micro_batch_size);
  const steps = source.get<number>(STEPS);
  if (total === undefined) {
    const known = { micro: micro ?? 4, steps: steps ?? 1 };
    return { ...known, total: known.micro * known.steps * ranks };
  }
  if (micro === undefined) return { total, micro: total / ((steps ?? 1) * ranks), steps: steps ?? 1 };
  return { total, micro, steps: steps ?? total / (micro * ranks) };
}

/** `auto` is a number only when the data and the workers are known. */
function numberOf(size: number | string | undefined): number | undefined {
  return typeof size === 'number' ? size : undefined;
}

function mismatch(source: Source, first: string): Translated {
  const { own, ranks } = source;
  const said = [
    [TOTAL, source.get(TOTAL) ?? own.train?.global_batch_size],
    [MICRO, source.get(MICRO) ?? own.train?.micro_batch_size],
    [STEPS, source.get(STEPS)],
  ].flatMap(([key, value]) => (value === undefined ? [] : [`${key} ${value}`]));
  const message =
    `${TOTAL} = ${MICRO} × ${STEPS} × resources.ranks.preferred does not hold in whole numbers for ` +
    `${said.join(', ')} and ${ranks} ranks`;
  return { settings: [], errors: [keyError(first, 'deepspeed_batch_mismatch', message)] };
}
