/**
 * Tokens per second and memory of whole optimizer steps: `npm run bench -- train --config llama-tiny --ranks 1
 * --threads 2`.
 *
 * Ranks are processes connected by Gloo on loopback, as in a job; tokens are random. The bound is this machine's GEMM
 * rate in the same run: `gemm_peak_share` = 6 · N · tokens/s ÷ the GEMM rate of all threads. N counts the parameters of
 * matrix products, so neither input embeddings nor norms. `work_share` also counts the products of attention.
 *
 * `--frozen 'model.layers.*'` does not train the parameters that match; the share then counts the work of a training of
 * all.
 *
 * `--adapter 16` trains adapters of this rank over all matrices of the layers, and the base is frozen. With
 * `--quantization nf4` or `int8` the base's matrices are quantized. With `--dora` the adapters have magnitudes. The
 * peer has neither.
 *
 * `--sequence-length 16384` and `--layers 2` override the configuration's, for memory and speed of long contexts, and
 * `--leaves 1` the micro-batches of a step. `estimate_share` is the peak beyond the start over the estimate of a job's
 * memory.
 *
 * With `--peer PYTHON`, a Python with torch, the same training also runs with PyTorch. The peak resident set is that of
 * the process, Node.js included, of which `start_rss_bytes` existed before the trainer. `pss_bytes_of_all` is the
 * memory of all ranks together after the last step, in which memory that they share counts once.
 */
import type { InstructionSet } from '../contracts/index.js';
import { architectureOf, estimateRank, flopsPerToken, resolveSpec } from '../job-document/index.js';
import { fingerprint, measureGemm } from '../native/js/index.js';
import { benchOptions, count, countOrNone, oneOf, onOff, optionalCount, path, text } from './options.js';
import { runPytorch } from './peers/pytorch.js';
import { median, report } from './report.js';
import { type RankReport, runRanks } from './train-ranks.js';
import {
  configs,
  LEAVES_PER_STEP,
  lengthOf,
  microBatchOf,
  modelConfigOf,
  numMultipliedParams,
  numParams,
  precisions,
  rankConfigs,
  type Training,
  tokensPerStep,
  withRandomTokens,
} from './training.js';

const GEMM_SIZE = 2048;
const PHASES = ['forward', 'backward', 'exchange', 'optimizer', 'gather'] as const;

const { config, precision, ranks, threads, warmup_steps, steps, peer, ...options } = benchOptions({
  config: oneOf(configs, 'llama-tiny'),
  precision: oneOf(precisions, 'bf16'),
  ranks: count(1),
  threads: count(2),
  warmup_steps: countOrNone(2),
  steps: count(12),
  leaves: count(LEAVES_PER_STEP),
  layers: optionalCount(),
  micro_batch: optionalCount(),
  sequence_length: optionalCount(),
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
  steps: steps + warmup_steps,
  leaves: options.leaves,
  activation_checkpointing: options.activation_checkpointing,
  ...(options.micro_batch && { micro_batch_size: options.micro_batch }),
  ...(options.layers && { layers: options.layers }),
  ...(options.sequence_length && { sequence_length: options.sequence_length }),
  ...(options.bucket_bytes && { zero: { bucket_bytes: options.bucket_bytes } }),
  ...(options.frozen && { frozen: options.frozen }),
  ...(options.adapter && { adapter: { type, rank: options.adapter } }),
  ...(options.quantization !== 'none' && { quantization: options.quantization }),
};

function speedOf(reports: RankReport[]) {
  const measured = (reports[0]?.steps ?? []).slice(warmup_steps).map(({ seconds }) => seconds);
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

/** The same training as a job, without what the benchmark alone can do. */
function jobSpec() {
  const microBatch = microBatchOf(training);
  return resolveSpec(
    {
      model: { config: modelConfigOf(training) },
      data: { dataset: `ds_${'0'.repeat(26)}` },
      train: {
        steps,
        precision,
        sequence_length: lengthOf(training),
        micro_batch_size: microBatch,
        global_batch_size: options.leaves * microBatch,
        activation_checkpointing: options.activation_checkpointing,
      },
      ...(options.bucket_bytes && { zero: { bucket_bytes: options.bucket_bytes } }),
      resources: { ranks: { max: ranks } },
    },
    null,
  ).spec;
}

/** Estimated bytes of the first rank; null for what a job's document says otherwise. */
function estimatedBytes(): number | null {
  if (options.adapter !== null || options.frozen !== null) return null;
  const instructionSet = fingerprint().replace(/^cpu-|\/.*$/g, '') as InstructionSet;
  return estimateRank(jobSpec(), ranks, 0, { device: 'cpu', threads, instruction_set: instructionSet }).total;
}

await withRandomTokens(training, async (tokenFile) => {
  const reports = await runRanks(rankConfigs(training, tokenFile));
  const { tokensPerSecond, phases } = speedOf(reports);
  const gemmFlops = await gemmRate();
  const estimate = estimatedBytes();
  const model = architectureOf(modelConfigOf(training));
  const largest = reports.reduce((most, rank) => (rank.peak_rss_bytes > most.peak_rss_bytes ? rank : most));
  report('train', {
    config,
    precision,
    ranks,
    threads,
    layers: model.num_hidden_layers,
    params: numParams(model),
    micro_batch: microBatchOf(training),
    sequence_length: lengthOf(training),
    activation_checkpointing: options.activation_checkpointing,
    bucket_bytes: options.bucket_bytes ?? 'default',
    tokens_per_step: tokensPerStep(training),
    frozen: options.frozen,
    adapter: options.adapter ? `${type} ${options.adapter}` : 'none',
    quantization: options.quantization,
    steps,
    tokens_per_s: Math.round(tokensPerSecond),
    gemm_gflops: Math.round(gemmFlops / 1e9),
    gemm_peak_share: Number(((6 * numMultipliedParams(model) * tokensPerSecond) / gemmFlops).toFixed(3)),
    work_share: Number(((flopsPerToken(jobSpec()) * tokensPerSecond) / gemmFlops).toFixed(3)),
    peak_rss_bytes: largest.peak_rss_bytes,
    start_rss_bytes: largest.start_rss_bytes,
    estimate_bytes: estimate,
    estimate_share:
      estimate && Number(((largest.peak_rss_bytes - largest.start_rss_bytes) / estimate).toFixed(4)),
    pss_bytes_of_all: reports.reduce((sum, { pss_bytes }) => sum + pss_bytes, 0),
    memory: largest.memory,
    phases,
    peer: peer === null ? 'not measured (--peer PYTHON)' : await runPytorch(peer, training, warmup_steps),
  });
});
