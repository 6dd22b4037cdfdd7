/**
 * Every operation of a training step relative to its bound: `npm run bench -- kernels --config all --op all --threads
 * 1`. The shapes are those of the configurations' micro-batches; each operation is measured in each of them, even if
 * the configuration does not use it. The bound is measured in the same run, right after the operation. It is the larger
 * of two times: multiplications and additions divided by the rate of a 2048³ product, and bytes divided by a bandwidth.
 * The bandwidth is that of a pass over 256 MiB in huge pages that updates in place or copies, as the operation does.
 * Operands that fit into caches stay there between runs, as between the operations of a step: relative to the memory
 * bandwidth their share can exceed 1.
 */

import { architectureOf, presets } from '../job-document/index.js';
import {
  type KernelTimes,
  kernelNames,
  measureBandwidth,
  measureGemm,
  measureKernel,
} from '../native/js/index.js';
import { benchOptions, count, oneOf, someOf } from './options.js';
import { median, report } from './report.js';
import { configs, precisions, shapeOf } from './training.js';

const GEMM_SIZE = 2048;
const PASS_BYTES = 512 * 1024 * 1024;
const FLOOR_REPEATS = 3;

const chosen = benchOptions({
  config: someOf(configs, 'all'),
  op: someOf(kernelNames(), 'all'),
  precision: oneOf(precisions, 'bf16'),
  threads: count(1),
  repeats: count(9),
});
const { precision, threads } = chosen;

/** Operations per second. */
async function gemmRate(): Promise<number> {
  const shape = { m: GEMM_SIZE, n: GEMM_SIZE, k: GEMM_SIZE };
  const seconds = await measureGemm({ ...shape, precision, threads, repeats: FLOOR_REPEATS });
  return (2 * GEMM_SIZE ** 3) / median(seconds);
}

/** Bytes per second. */
async function bandwidth(inPlace: boolean): Promise<number> {
  const pass = inPlace ? 'in_place' : 'copy';
  const seconds = await measureBandwidth({ bytes: PASS_BYTES, pass, threads, repeats: FLOOR_REPEATS });
  return PASS_BYTES / median(seconds);
}

async function floorOf({ operations, bytes, in_place }: KernelTimes) {
  const compute = operations === 0 ? 0 : operations / (await gemmRate());
  const memory = bytes / (await bandwidth(in_place));
  return compute > memory
    ? { seconds: compute, bound: 'compute' as const }
    : { seconds: memory, bound: 'memory' as const };
}

const microseconds = (seconds: number) => Number((seconds * 1e6).toFixed(1));

for (const config of chosen.config) {
  const model = architectureOf(presets[config]);
  for (const op of chosen.op) {
    const { repeats } = chosen;
    const times = await measureKernel({ op, model, ...shapeOf(config), precision, threads, repeats });
    const floor = await floorOf(times);
    const seconds = median(times.seconds);
    report('kernels', {
      config,
      op,
      shape: times.shape,
      dtype: precision,
      threads,
      us: microseconds(seconds),
      floor_us: microseconds(floor.seconds),
      share_of_floor: Number((floor.seconds / seconds).toFixed(3)),
      bound: floor.bound,
    });
  }
}
