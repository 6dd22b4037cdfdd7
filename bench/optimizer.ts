/**
 * One optimizer step over fp32 master, states and gradient with the bf16 write:
 * `npm run bench -- optimizer --optimizer adamw --threads 1,2`. Each line is one optimizer (of a list with commas, or
 * `all`) with one number of threads. The floor beside it is an in-place update that moves as many bytes, in the same run.
 */
import { parseArgs } from 'node:util';
import { measureOptimizer, type OptimizerConfig } from '../native/js/index.js';
import { median, report } from './report.js';

const OPTIMIZERS = ['adamw', 'adam', 'lamb', 'lion', 'adagrad', 'sgd'] as const;
const BLOCK = 4096;

const { values } = parseArgs({
  options: {
    optimizer: { type: 'string', default: 'adamw' },
    threads: { type: 'string', default: '1' },
    params: { type: 'string', default: '100000000' },
    repeats: { type: 'string', default: '7' },
  },
});

function optimizerNamed(name: string): OptimizerConfig['type'] {
  const known = OPTIMIZERS.find((optimizer) => optimizer === name);
  if (!known) throw new Error(`--optimizer takes all, or some of ${OPTIMIZERS.join(',')}; not ${name}`);
  return known;
}

const optimizers = values.optimizer === 'all' ? OPTIMIZERS : values.optimizer.split(',').map(optimizerNamed);
const params = Math.ceil(Number(values.params) / BLOCK) * BLOCK;

for (const optimizer of optimizers) {
  for (const threads of values.threads.split(',').map(Number)) {
    const repeats = Number(values.repeats);
    const seconds = await measureOptimizer({ optimizer, params, threads, repeats });
    const step = median(seconds.optimizer_seconds);
    const floor = median(seconds.in_place_seconds);
    const gigabytes = (params * seconds.bytes_per_param) / 1e9;
    report('optimizer', {
      optimizer,
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
