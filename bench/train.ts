/**
 * Tokens per second of whole optimizer steps: `npm run bench -- train --config llama-tiny --ranks 1 --threads 2`.
 * Ranks are processes that talk over Gloo on loopback, as in a job; tokens are random. The floor beside it is this
 * machine's GEMM speed in the same run: `gemm_peak_share` = 6 · parameters · tokens/s ÷ the GEMM rate of all threads.
 */
import { parseArgs } from 'node:util';
import type { PresetName } from '../contracts/presets.js';
import { measureGemm, type Precision } from '../native/js/index.js';
import { median, report } from './report.js';
import { runRanks } from './train-ranks.js';
import { numParams, rankConfigs, shapes, tokensPerStep, withRandomTokens } from './training.js';

const WARMUP_STEPS = 2;
const GEMM_SIZE = 2048;
const PHASES = ['forward', 'backward', 'exchange', 'optimizer', 'gather'] as const;
const PRECISIONS: readonly Precision[] = ['bf16', 'fp16', 'fp32'];

function usage(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

function options() {
  const { values } = parseArgs({
    options: {
      config: { type: 'string', default: 'llama-tiny' },
      ranks: { type: 'string', default: '1' },
      threads: { type: 'string', default: '2' },
      steps: { type: 'string', default: '12' },
      precision: { type: 'string', default: 'bf16' },
    },
  });
  const positive = (name: 'ranks' | 'threads' | 'steps') => {
    const value = Number(values[name]);
    return Number.isInteger(value) && value > 0 ? value : usage(`--${name} must be a positive integer`);
  };
  const config = values.config as PresetName;
  if (!shapes[config])
    return usage(`no configuration '${config}'; there are: ${Object.keys(shapes).join(', ')}`);
  const precision = PRECISIONS.find((name) => name === values.precision);
  if (!precision) return usage(`--precision must be one of ${PRECISIONS.join(', ')}`);
  return {
    config,
    precision,
    ranks: positive('ranks'),
    threads: positive('threads'),
    steps: positive('steps'),
  };
}

const { config, precision, ranks, threads, steps } = options();
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
    gemm_peak_share: Number(((6 * params * tokensPerSecond) / gemmFlops).toFixed(3)),
    peak_rss_bytes: Math.max(...reports.map((rank) => rank.peak_rss_bytes)),
    phases: Object.fromEntries(
      PHASES.map((phase) => [
        phase,
        Number((median(measured.map((step) => step[phase])) / secondsPerStep).toFixed(4)),
      ]),
    ),
  });
});
