import type { ResolvedJobSpec } from '../../contracts/index.js';

type Train = ResolvedJobSpec['train'];

/**
 * V8's logarithms and cosines may be off in the last bit, and the rate is part of a call, which must be the same with
 * every version.
 */
const DIGITS = 12;

/** Returns the learning rate of a step: that of native/train/lr_schedule.h, rounded. @param done steps before it */
export function lrAt(train: Train, done: number): number {
  return Number(rateAt(train, done).toPrecision(DIGITS));
}

function rateAt({ lr_schedule, optimizer, steps = 1 }: Train, done: number): number {
  const { type, warmup_steps: warmup, warmup_type, warmup_start_lr: start, min_lr: end } = lr_schedule;
  const peak = optimizer.lr;
  if (done < warmup) {
    const share =
      warmup_type === 'log' ? Math.log(done + 1) / Math.log(Math.max(2, warmup)) : (done + 1) / warmup;
    return start + (peak - start) * share;
  }
  const progress = progressOf(done, warmup, steps - warmup);
  switch (type) {
    case 'constant':
      return peak;
    case 'linear':
      return peak + (end - peak) * progress;
    case 'cosine':
      return end + 0.5 * (peak - end) * (1 + Math.cos(Math.PI * progress));
    case 'wsd': {
      const { decay_steps: length = steps } = lr_schedule;
      return peak + (end - peak) * progressOf(done, steps - length, length);
    }
  }
}

/** Returns the progress, from 0 to 1, of a decay that begins after `first` steps and takes `length`. */
function progressOf(done: number, first: number, length: number): number {
  return Math.min(1, Math.max(0, (done - first) / Math.max(1, length)));
}
