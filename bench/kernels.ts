/**
 * Matrix products at the shapes that training multiplies: `npm run bench -- kernels --threads 1`. Every product is
 * bounded by the same arithmetic, so the best shape of the run is the floor that the others stand beside.
 */
import { measureGemm } from '../native/js/index.js';
import { benchOptions, count, oneOf } from './options.js';
import { median, report } from './report.js';
import { precisions } from './training.js';

const SHAPES = [
  { m: 2048, n: 2048, k: 2048 },
  { m: 512, n: 3072, k: 768 }, // GPT-2's MLP and back, 512 tokens
  { m: 512, n: 768, k: 3072 },
  { m: 512, n: 50304, k: 768 }, // its head
  { m: 1024, n: 1408, k: 512 }, // llama-small's MLP, 1024 tokens
  { m: 2048, n: 704, k: 256 }, // llama-tiny's MLP and back, 2048 tokens
  { m: 2048, n: 256, k: 704 },
];

const chosen = benchOptions({
  threads: count(1),
  precision: oneOf(precisions, 'bf16'),
  repeats: count(9),
});

for (const shape of SHAPES) {
  const options = { ...shape, ...chosen };
  const seconds = median(await measureGemm(options));
  const gflops = (2 * shape.m * shape.n * shape.k) / seconds / 1e9;
  report('kernels', { kernel: 'gemm', ...options, gflops: Number(gflops.toFixed(1)) });
}
