/**
 * Cost of reducing gradients to their owners: `npm run bench -- reduce --config llama-small --ranks 2 --threads 1`.
 *
 * Bytes are counted where a rank passes them to the transport. They are compared with a ring reduce-scatter of the
 * gradients, (N-1)/N of them per round of leaves. They are also compared with the actual traffic of the loopback
 * interface: all ranks, headers, parameters and statistics included. Hidden is the communication thread's time during
 * which no step waited.
 */
import { readFileSync } from 'node:fs';
import { architectureOf, presets } from '../job-document/index.js';
import { paramTable, type StepResult } from '../native/js/index.js';
import { benchOptions, count, oneOf } from './options.js';
import { median, report } from './report.js';
import { runRanks } from './train-ranks.js';
import { configs, LEAVES_PER_STEP, rankConfigs, tokensPerStep, withRandomTokens } from './training.js';

const WARMUP_STEPS = 2;
const REDUCE_BYTES = 2; // bf16
const BLOCK_NUMEL = 4096;

const { config, ranks, threads, steps, repeats } = benchOptions({
  config: oneOf(configs, 'llama-small'),
  ranks: count(2),
  threads: count(1),
  steps: count(6),
  repeats: count(3),
});

/** Bytes sent by the loopback interface. */
function loopbackBytes(): number {
  const line = readFileSync('/proc/net/dev', 'utf8')
    .split('\n')
    .find((row) => row.trim().startsWith('lo:'));
  return Number(line?.trim().split(/\s+/)[9] ?? Number.NaN);
}

interface Run {
  steps: StepResult[][];
  loopback_bytes: number;
}

async function run(tokenFile: string): Promise<Run> {
  const training = { config, precision: 'bf16' as const, ranks, threads, steps: steps + WARMUP_STEPS };
  const before = loopbackBytes();
  const reports = await runRanks(rankConfigs(training, tokenFile));
  return {
    steps: reports.map((rank) => rank.steps.slice(WARMUP_STEPS)),
    loopback_bytes: loopbackBytes() - before,
  };
}

function mean(list: readonly number[]): number {
  return list.reduce((sum, value) => sum + value, 0) / list.length;
}

/** Ranks own whole blocks, so padding is transferred too. */
const paddedNumel = paramTable(architectureOf(presets[config])).reduce(
  (sum, { num_blocks }) => sum + num_blocks * BLOCK_NUMEL,
  0,
);
const rounds = Math.ceil(LEAVES_PER_STEP / ranks);
const ringBytes = (rounds * REDUCE_BYTES * paddedNumel * (ranks - 1)) / ranks;

function summary(runs: Run[]) {
  const all = runs.flatMap((one) => one.steps.flat());
  const busy = median(all.map((step) => step.seconds.exchange_busy));
  const waited = median(all.map((step) => step.seconds.exchange));
  return {
    step_s: Number(median(all.map((step) => step.seconds.total)).toFixed(4)),
    exchange_busy_s: Number(busy.toFixed(4)),
    exchange_waited_s: Number(waited.toFixed(4)),
    hidden_share: Number((1 - Math.min(1, waited / busy)).toFixed(3)),
    reduced_bytes_per_rank_step: Math.round(mean(all.map((step) => step.sent.reduced))),
    ring_bytes_per_rank_step: Math.round(ringBytes),
    gathered_bytes_per_rank_step: Math.round(mean(all.map((step) => step.sent.gathered))),
    loopback_bytes_per_rank_step: Math.round(
      mean(runs.map((one) => one.loopback_bytes)) / ranks / (steps + WARMUP_STEPS),
    ),
  };
}

await withRandomTokens({ config }, async (tokenFile) => {
  const runs: Run[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) runs.push(await run(tokenFile));
  report('reduce', {
    config,
    ranks,
    threads,
    leaves: LEAVES_PER_STEP,
    tokens_per_step: tokensPerStep({ config }),
    ...summary(runs),
  });
});
