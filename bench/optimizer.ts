/**
 * One AdamW pass over fp32 master and moments with the bf16 write: `npm run bench -- optimizer --threads 1`.
 * 30 bytes move per parameter; the floor beside it is an in-place update of as many bytes in the same run.
 */
import { parseArgs } from 'node:util';
import { measureOptimizer } from '../native/js/index.js';
import { median, report } from './report.js';

const BYTES_PER_PARAM = 30;

const { values } = parseArgs({
  options: {
    threads: { type: 'string', default: '1' },
    params: { type: 'string', default: '100000000' },
    repeats: { type: 'string', default: '7' },
  },
});
const [threads, params, repeats] = [Number(values.threads), Number(values.params), Number(values.repeats)];

const seconds = await measureOptimizer({ params, threads, repeats });
const adamw = median(seconds.adamw_seconds);
const gigabytes = (params * BYTES_PER_PARAM) / 1e9;
report('optimizer', {
  optimizer: 'adamw',
  threads,
  params,
  ns_per_param: Number(((adamw * 1e9) / params).toFixed(3)),
  gb_per_s: Number((gigabytes / adamw).toFixed(1)),
  in_place_gb_per_s: Number((gigabytes / median(seconds.in_place_seconds)).toFixed(1)),
});
