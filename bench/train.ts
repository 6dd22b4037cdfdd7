/**
 * Tokens per second of whole optimizer steps: `npm run bench -- train --config llama-tiny --ranks 1 --threads 2`.
 * Ranks are processes that talk over Gloo on loopback, as in a job; tokens are random. The floor beside it is this
 * machine's GEMM speed in the same run: `gemm_peak_share` = 6 · N · tokens/s ÷ the GEMM rate of all threads, where N are
 * the parameters that take part in matrix products: an input embedding is looked up, and norms only scale.
 */
import { measureGemm } from '../native/js/index.js';
import { benchOptions, count, oneOf } from './options.js';
import { median, report } from './report.js';
import { runRanks } from './train-ranks.js';
import {
  configs,
  numMultipliedParams,
  numParams,
  precisions,
  rankConfigs,
  tokensPerStep,
  withRandomTokens,
} from './training.js';

const WARMUP_STEPS = 2;
const GEMM_SIZE = 2048;
const PHASES = ['forward', 'backward', 'exchange', 'optimizer', 'gather'] as const;

const { config, precision, ranks, threads, steps } = benchOptions({
  config: oneOf(configs, 'llama-tiny'),
  precision: oneOf(precisions, 'bf16'),
  ranks: count(1),
  threads: count(2),
  steps: count(12),
});
const params = numParams(config);

await withRandomTokens(config, async (tokenFile) => {
  const training = { config, precision, ranks, threads, steps: steps + WARMUP_STEPS };
  const reports = await runRanks(rankConfigs(training, tokenFile));
  const measured = (reports[0]?.steps ?? []).slice(WARMUP_STEPS).map(({ seconds }) => seconds);
  const secondsPerStep = median(measured.map((step) => step.total));
  const tokensPerSecond = tokensPerStep(config) / secondsPerStep;
  const gemmSeconds = await measureGemm({
    m: GEMM_SIZE,
    n: GEMM_SIZE,
    k: GEMM_SIZE,
    precision,
    threads: ranks * threads,
    repeats: 7,
  });
  const gemmFlops = (2 * GEMM_SIZE ** 3) / median(gemmSeconds);
  report('train', {
    config,
    precision,
    ranks,
    threads,
    params,
    tokens_per_step: tokensPerStep(config),
    steps,
    tokens_per_s: Math.round(tokensPerSecond),
    gemm_gflops: Math.round(gemmFlops / 1e9),
    gemm_peak_share: Number(((6 * numMultipliedParams(config) * tokensPerSecond) / gemmFlops).toFixed(3)),
    peak_rss_bytes: Math.max(...reports.map((rank) => rank.peak_rss_bytes)),
    phases: Object.fromEntries(
      PHASES.map((phase) => [
        phase,
        Number((median(measured.map((step) => step[phase])) / secondsPerStep).toFixed(4)),
      ]),
    ),
  });
});
