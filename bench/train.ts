/**
 * Tokens per second of whole optimizer steps: `npm run bench -- train --config llama-tiny --ranks 1 --threads 2`.
 * Ranks are processes that talk over Gloo on loopback, as in a job; tokens are random. The floor beside it is this
 * machine's GEMM speed in the same run: `gemm_peak_share` = 6 · parameters · tokens/s ÷ the GEMM rate of all threads.
 */
import { randomFillSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type PresetName, presets } from '../contracts/presets.js';
import {
  measureGemm,
  type Precision,
  paramTable,
  plainSettings,
  type TrainerConfig,
} from '../native/js/index.js';
import { median, report } from './report.js';
import { runRanks } from './train-ranks.js';

/** Batch shapes of the published comparison: tokens per sequence, sequences per leaf. */
const shapes: Partial<Record<PresetName, { sequence_length: number; micro_batch_size: number }>> = {
  'llama-tiny': { sequence_length: 128, micro_batch_size: 16 },
  'llama-small': { sequence_length: 256, micro_batch_size: 4 },
};
const LEAVES_PER_STEP = 4;
const WARMUP_STEPS = 2;
const GEMM_SIZE = 2048;
const PHASES = ['forward', 'backward', 'exchange', 'optimizer', 'gather'] as const;

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
  const shape = shapes[values.config as PresetName];
  if (!shape)
    return usage(`no configuration '${values.config}'; there are: ${Object.keys(shapes).join(', ')}`);
  if (values.precision !== 'bf16' && values.precision !== 'fp32')
    return usage('--precision must be bf16 or fp32');
  const precision: Precision = values.precision;
  const [ranks, threads, steps] = [positive('ranks'), positive('threads'), positive('steps')];
  return { config: values.config as PresetName, shape, precision, ranks, threads, steps };
}

function writeRandomTokens(path: string, count: number, vocabSize: number): void {
  const tokens = randomFillSync(new Uint16Array(count));
  writeFileSync(
    path,
    tokens.map((token) => token % vocabSize),
  );
}

const { config, shape, precision, ranks, threads, steps } = options();
const model = presets[config];
const numParams = paramTable(model).reduce((sum, row) => sum + row.numel, 0);
const tokensPerStep = LEAVES_PER_STEP * shape.micro_batch_size * shape.sequence_length;

function rankConfig(rank: number, tokenFile: string): TrainerConfig {
  return {
    model,
    rank,
    world_size: ranks,
    threads,
    precision,
    ...plainSettings(precision),
    ...shape,
    global_batch_size: LEAVES_PER_STEP * shape.micro_batch_size,
    steps: steps + WARMUP_STEPS,
    seed: 1,
    data_seed: 1,
    token_file: tokenFile,
    comm: { backend: ranks === 1 ? 'solo' : 'gloo', bind_address: '127.0.0.1', timeout_ms: 60_000 },
  };
}

const directory = mkdtempSync(join(tmpdir(), 'zerofleet-bench-'));
try {
  const tokenFile = join(directory, 'tokens.bin');
  writeRandomTokens(tokenFile, 1 << 20, model.vocab_size);
  const reports = await runRanks(Array.from({ length: ranks }, (_, rank) => rankConfig(rank, tokenFile)));
  const measured = (reports[0]?.steps ?? []).slice(WARMUP_STEPS);
  const secondsPerStep = median(measured.map((step) => step.total));
  const tokensPerSecond = tokensPerStep / secondsPerStep;
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
    params: numParams,
    tokens_per_step: tokensPerStep,
    steps,
    tokens_per_s: Math.round(tokensPerSecond),
    gemm_gflops: Math.round(gemmFlops / 1e9),
    gemm_peak_share: Number(((6 * numParams * tokensPerSecond) / gemmFlops).toFixed(3)),
    peak_rss_bytes: Math.max(...reports.map((rank) => rank.peak_rss_bytes)),
    phases: Object.fromEntries(
      PHASES.map((phase) => [
        phase,
        Number((median(measured.map((step) => step[phase])) / secondsPerStep).toFixed(4)),
      ]),
    ),
  });
} finally {
  rmSync(directory, { recursive: true, force: true });
}
