/**
 * Tokens per second and memory of whole optimizer steps: `npm run bench -- train --config llama-tiny --ranks 1
 * --threads 2`.
 *
 * Ranks are processes connected by Gloo on loopback, as in a job; tokens are random. The bound is this machine's GEMM
 * rate in the same run: `gemm_peak_share` = 6 · N · tokens/s ÷ the GEMM rate of all threads. N counts the parameters of
 * matrix products, so neither input embeddings nor norms.
 *
 * `--frozen 'model.layers.*'` does not train the parameters that match; the share then counts the work of a training of
 * all.
 *
 * `--adapter 16` trains adapters of this rank over all matrices of the layers, and the base is frozen. With
 * `--quantization nf4` or `int8` the base's matrices are quantized. With `--dora` the adapters have magnitudes. The
 * peer has neither.
 *
 * With `--peer PYTHON`, a Python with torch, the same training also runs with PyTorch. The peak resident set is that of
 * the process, Node.js included, of which `start_rss_bytes` existed before the trainer. `pss_bytes_of_all` is the
 * memory of all ranks together after the last step, in which memory that they share counts once.
 */
import { architectureOf, presets } from '../job-document/index.js';
import { measureGemm } from '../native/js/index.js';
import { benchOptions, count, oneOf, onOff, optionalCount, path, text } from './options.js';
import { runPytorch } from './peers/pytorch.js';
import { median, report } from './report.js';
import { type RankReport, runRanks } from './train-ranks.js';
import {
  configs,
  microBatchOf,
  numMultipliedParams,
  numParams,
  precisions,
  rankConfigs,
  type Training,
  tokensPerStep,
  withRandomTokens,
} from './training.js';

const WARMUP_STEPS = 2;
const GEMM_SIZE = 2048;
const PHASES = ['forward', 'backward', 'exchange', 'optimizer', 'gather'] as const;

const { config, precision, ranks, threads, steps, peer, ...options } = benchOptions({
  config: oneOf(configs, 'llama-tiny'),
  precision: oneOf(precisions, 'bf16'),
  ranks: count(1),
  threads: count(2),
  steps: count(12),
  micro_batch: optionalCount(),
  bucket_bytes: optionalCount(),
  activation_checkpointing: onOff(),
  frozen: text(),
  adapter: optionalCount(),
  dora: onOff(),
  quantization: oneOf<'none' | 'nf4' | 'int8'>(['none', 'nf4', 'int8'], 'none'),
  peer: path(),
});
const type = options.dora ? 'dora' : 'lora';
const training: Training = {
  config,
  precision,
  ranks,
  threads,
  steps: steps + WARMUP_STEPS,
  activation_checkpointing: options.activation_checkpointing,
  ...(options.micro_batch && { micro_batch_size: options.micro_batch }),
  ...(options.bucket_bytes && { zero: { bucket_bytes: options.bucket_bytes } }),
  ...(options.frozen && { frozen: options.frozen }),
  ...(options.adapter && { adapter: { type, rank: options.adapter } }),
  ...(options.quantization !== 'none' && { quantization: options.quantization }),
};

function speedOf(reports: RankReport[]) {
  const measured = (reports[0]?.steps ?? []).slice(WARMUP_STEPS).map(({ seconds }) => seconds);
  const secondsPerStep = median(measured.map((step) => step.total));
  const share = (phase: (typeof PHASES)[number]) =>
    Number((median(measured.map((step) => step[phase])) / secondsPerStep).toFixed(4));
  return {
    tokensPerSecond: tokensPerStep(training) / secondsPerStep,
    phases: Object.fromEntries(PHASES.map((phase) => [phase, share(phase)])),
  };
}

/** Floating-point operations per second of a large product on the threads of all ranks. */
async function gemmRate(): Promise<number> {
  const shape = { m: GEMM_SIZE, n: GEMM_SIZE, k: GEMM_SIZE };
  const seconds = await measureGemm({ ...shape, precision, threads: ranks * threads, repeats: 7 });
  return (2 * GEMM_SIZE ** 3) / median(seconds);
}

await withRandomTokens(config, async (tokenFile) => {
  const reports = await runRanks(rankConfigs(training, tokenFile));
  const { tokensPerSecond, phases } = speedOf(reports);
  const gemmFlops = await gemmRate();
  const largest = reports.reduce((most, rank) => (rank.peak_rss_bytes > most.peak_rss_bytes ? rank : most));
  report('train', {
    config,
    precision,
    ranks,
    threads,
    params: numParams(config),
    micro_batch: microBatchOf(training),
    activation_checkpointing: options.activation_checkpointing,
    bucket_bytes: options.bucket_bytes ?? 'default',
    tokens_per_step: tokensPerStep(training),
    frozen: options.frozen,
    adapter: options.adapter ? `${type} ${options.adapter}` : 'none',
    quantization: options.quantization,
    steps,
    tokens_per_s: Math.round(tokensPerSecond),
    gemm_gflops: Math.round(gemmFlops / 1e9),
    gemm_peak_share: Number(
      ((6 * numMultipliedParams(architectureOf(presets[config])) * tokensPerSecond) / gemmFlops).toFixed(3),
    ),
    peak_rss_bytes: largest.peak_rss_bytes,
    start_rss_bytes: largest.start_rss_bytes,
    pss_bytes_of_all: reports.reduce((sum, { pss_bytes }) => sum + pss_bytes, 0),
    memory: largest.memory,
    phases,
    peer: peer === null ? 'not measured (--peer PYTHON)' : await runPytorch(peer, training, steps),
  });
});
