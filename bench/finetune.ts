/**
 * Useful tokens per second of fine-tuning: `npm run bench -- finetune --peer PYTHON --objectives sft,dpo --steps 8`.
 *
 * LoRA of rank 16 over all matrices of a model with random weights, with 8 rows a step, 2 a micro-batch, at most 1,024
 * tokens each. The chats and pairs have the lengths of public instruction data (finetune/texts.ts). Useful tokens
 * exclude padding. A line is an objective:
 *
 * | field | rows |
 * |---|---|
 * | `padded` | one text each, all positions up to the limit computed |
 * | `whole` | `data.packing: whole`; with pairs one text each; what follows a row's last target is not computed |
 * | `fit` | `data.packing: fit`; not with pairs |
 * | `peer` | those of TRL and PEFT, fp32, padded to the longest of a micro-batch |
 *
 * `--peer` is a Python with torch, trl and peft. All run in turn, `--rounds` times; the numbers are medians.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { architectureOf, presets } from '../job-document/index.js';
import type { TrainerConfig } from '../native/js/index.js';
import { DATA_KINDS, type DataKind, pairsLike, textsLike, writeRows } from './finetune/texts.js';
import { benchOptions, count, oneOf, path, someOf } from './options.js';
import { runPython } from './peers/python.js';
import { median, report } from './report.js';
import { runRanks } from './train-ranks.js';
import { configs, precisions, rankConfigs } from './training.js';

const WARMUP_STEPS = 1;
const ROWS = 8;
const MICRO_BATCH = 2;
const RANK = 16;
const OBJECTIVES = ['sft', 'dpo'] as const;
type Objective = (typeof OBJECTIVES)[number];

const { config, precision, threads, steps, rounds, limit, objectives, peer } = benchOptions({
  config: oneOf(configs, 'llama-small'),
  precision: oneOf(precisions, 'bf16'),
  threads: count(2),
  steps: count(8),
  rounds: count(3),
  limit: count(1024),
  objectives: someOf(OBJECTIVES, 'all'),
  peer: path(),
});
const { vocab_size } = architectureOf(presets[config]);

function trainerConfig(objective: Objective, file: string): TrainerConfig {
  const [plain] = rankConfigs(
    {
      config,
      precision,
      ranks: 1,
      threads,
      steps: steps + WARMUP_STEPS,
      adapter: { type: 'lora', rank: RANK },
    },
    file,
  );
  if (plain === undefined) throw new Error('one rank has one configuration');
  return {
    ...plain,
    sequence_length: limit,
    micro_batch_size: MICRO_BATCH,
    global_batch_size: ROWS,
    preference:
      objective === 'dpo' ? { type: 'dpo', beta: 0.1, label_smoothing: 0, reference: 'base' } : null,
  };
}

/** Measures one kind of rows. @param usefulTokens mean of a unit */
async function ours(objective: Objective, file: string, usefulTokens: number): Promise<number> {
  const [result] = await runRanks([trainerConfig(objective, file)]);
  const seconds = (result?.steps ?? []).slice(WARMUP_STEPS).map((step) => step.seconds.total);
  return (ROWS * usefulTokens * seconds.length) / seconds.reduce((sum, each) => sum + each, 0);
}

async function theirs(python: string, objective: Objective, file: string): Promise<number> {
  const options = {
    config,
    objective,
    file,
    threads,
    steps,
    limit,
    rows: ROWS,
    'micro-batch': MICRO_BATCH,
    rank: RANK,
  };
  const report = await runPython<{ useful_tokens_per_s: number }>(python, 'trl_finetune.py', options);
  return report.useful_tokens_per_s;
}

async function measure(objective: Objective, folder: string): Promise<void> {
  const numTexts = ROWS * (steps + WARMUP_STEPS);
  const units =
    objective === 'dpo' ? pairsLike(numTexts, limit, vocab_size) : textsLike(numTexts, limit, vocab_size);
  const kinds = DATA_KINDS.filter((kind) => kind !== 'fit' || objective === 'sft');
  const files = kinds.map((kind) => ({
    kind,
    path: join(folder, `${objective}-${kind}`),
    ...writeRows(join(folder, `${objective}-${kind}`), units, kind, limit),
  }));
  const texts = join(folder, `${objective}.json`);
  await writeFile(texts, JSON.stringify(units));
  const speeds = new Map<DataKind | 'peer', number[]>();
  const add = (kind: DataKind | 'peer', speed: number) =>
    speeds.set(kind, [...(speeds.get(kind) ?? []), speed]);
  for (let round = 0; round < rounds; round++) {
    for (const { kind, path, tokens_per_unit } of files)
      add(kind, await ours(objective, path, tokens_per_unit));
    if (peer !== null) add('peer', await theirs(peer, objective, texts));
  }
  const speed = (kind: DataKind | 'peer') => median(speeds.get(kind) ?? []);
  const best = Math.max(...kinds.map(speed));
  report('finetune', {
    objective,
    config,
    precision,
    threads,
    limit,
    steps,
    rounds,
    texts: numTexts,
    padding: Object.fromEntries(files.map(({ kind, padding }) => [kind, Number(padding.toFixed(3))])),
    useful_tokens_per_s: Object.fromEntries(
      [...speeds.keys()].map((kind) => [kind, Number(speed(kind).toFixed(1))]),
    ),
    times_padded: Number((best / speed('padded')).toFixed(2)),
    ...(peer !== null && { times_peer: Number((best / speed('peer')).toFixed(2)) }),
  });
}

const folder = await mkdtemp(join(tmpdir(), 'zf-finetune-'));
try {
  for (const objective of objectives) await measure(objective, folder);
} finally {
  await rm(folder, { recursive: true });
}
