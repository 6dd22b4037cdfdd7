/**
 * One optimizer step over fp32 master, states and gradient with the bf16 write: `npm run bench -- optimizer --optimizer
 * adamw --threads 1,2`. Each line is one optimizer (of a comma-separated list, or `all`) with one number of threads.
 * The bound is an in-place update of as many bytes in the same run. With `--ema` the optimizer also keeps an average of
 * the weights.
 */
import { measureOptimizer } from '../native/js/index.js';
import { benchOptions, count, counts, onOff, someOf } from './options.js';
import { median, report } from './report.js';

const OPTIMIZERS = ['adamw', 'adam', 'lamb', 'lion', 'adagrad', 'sgd'] as const;
const BLOCK = 4096;

const chosen = benchOptions({
  optimizer: someOf(OPTIMIZERS, 'adamw'),
  threads: counts(1),
  params: count(100_000_000),
  repeats: count(7),
  ema: onOff(),
});
const emaDecay = chosen.ema ? 0.999 : 0;
const params = Math.ceil(chosen.params / BLOCK) * BLOCK;

for (const optimizer of chosen.optimizer) {
  for (const threads of chosen.threads) {
    const seconds = await measureOptimizer({
      optimizer,
      ema_decay: emaDecay,
      params,
      threads,
      repeats: chosen.repeats,
    });
    const step = median(seconds.optimizer_seconds);
    const floor = median(seconds.in_place_seconds);
    const gigabytes = (params * seconds.bytes_per_param) / 1e9;
    report('optimizer', {
      optimizer,
      ema_decay: emaDecay,
      threads,
      params,
      ns_per_param: Number(((step * 1e9) / params).toFixed(3)),
      bytes_per_param: seconds.bytes_per_param,
      gb_per_s: Number((gigabytes / step).toFixed(1)),
      in_place_gb_per_s: Number((gigabytes / floor).toFixed(1)),
      in_place_share: Number((floor / step).toFixed(3)),
    });
  }
}
