import { randomFillSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Architecture } from '../contracts/architecture.js';
import type { Precision, ResolvedModelConfig } from '../contracts/index.js';
import { architectureOf, layerModules, type PresetName, presets } from '../job-document/index.js';
import { paramTable, plainSettings, type TrainerConfig } from '../native/js/index.js';
import { tokenFile } from '../native/js/testing.js';

/** Batch shapes of the published comparison: tokens per sequence, sequences per leaf. */
const shapes: Partial<Record<PresetName, { sequence_length: number; micro_batch_size: number }>> = {
  'llama-tiny': { sequence_length: 128, micro_batch_size: 16 },
  'llama-small': { sequence_length: 256, micro_batch_size: 4 },
  gpt2: { sequence_length: 256, micro_batch_size: 2 },
};
export const configs = Object.keys(shapes) as PresetName[];
export const precisions: readonly Precision[] = ['bf16', 'fp16', 'fp32'];
export const LEAVES_PER_STEP = 4;

/** A training on random tokens, ranks on loopback. */
export interface Training {
  config: PresetName;
  precision: Precision;
  ranks: number;
  threads: number;
  /** All steps, including the warm-up. */
  steps: number;
  zero?: Partial<TrainerConfig['zero']>;
  activation_checkpointing?: boolean;
  /** Override the configuration's. */
  micro_batch_size?: number;
  sequence_length?: number;
  /** Layers in place of the configuration's. */
  layers?: number;
  /** Micro-batches of a step; LEAVES_PER_STEP by default. */
  leaves?: number;
  /** Pattern of the parameters that are not trained. */
  frozen?: string;
  /** Adapters over all matrices of the layers, whose base is frozen. */
  adapter?: { type: 'lora' | 'dora'; rank: number };
  /** Storage of that base. */
  quantization?: 'nf4' | 'int8';
}

export function numParams(model: Architecture): number {
  return paramTable(model).reduce((sum, row) => sum + row.numel, 0);
}

/** Elements of the matrices that each token is multiplied with. A tied embedding counts once, as the head. */
export function numMultipliedParams(model: Architecture): number {
  const matrices = paramTable(model).filter(({ shape }) => shape.length > 1);
  const all = matrices.reduce((sum, row) => sum + row.numel, 0);
  const lookedUp =
    (model.tie_word_embeddings ? 0 : model.vocab_size) +
    (model.positions === 'learned' ? model.max_position_embeddings : 0);
  return all - lookedUp * model.hidden_size;
}

export function microBatchOf({ config, micro_batch_size }: Pick<Training, 'config' | 'micro_batch_size'>) {
  return micro_batch_size ?? shapeOf(config).micro_batch_size;
}

export function lengthOf({ config, sequence_length }: Pick<Training, 'config' | 'sequence_length'>) {
  return sequence_length ?? shapeOf(config).sequence_length;
}

export function tokensPerStep(
  training: Pick<Training, 'config' | 'micro_batch_size' | 'sequence_length' | 'leaves'>,
): number {
  return (training.leaves ?? LEAVES_PER_STEP) * microBatchOf(training) * lengthOf(training);
}

/** The model's config.json, with as many layers as the training says and as many positions as a sequence has. */
export function modelConfigOf(training: Pick<Training, 'config' | 'sequence_length' | 'layers'>) {
  const config: Record<string, unknown> = { ...presets[training.config] };
  if ('num_hidden_layers' in config && training.layers) config.num_hidden_layers = training.layers;
  if ('max_position_embeddings' in config)
    config.max_position_embeddings = Math.max(Number(config.max_position_embeddings), lengthOf(training));
  return config as ResolvedModelConfig;
}

export function shapeOf(config: PresetName) {
  const shape = shapes[config];
  if (!shape) throw new Error(`no configuration '${config}'; there are: ${Object.keys(shapes).join(', ')}`);
  return shape;
}

function adapterOf({ config, adapter }: Training): TrainerConfig['model']['adapter'] {
  if (adapter === undefined) return null;
  const targetModules = layerModules(architectureOf(presets[config])).map((name) => name.replace(/.*\./, ''));
  return {
    ...adapter,
    scale: 2,
    dropout: 0,
    init: 'kaiming_uniform',
    target_modules: targetModules,
    modules_to_save: [],
  };
}

/** The configurations of all ranks. */
export function rankConfigs(training: Training, tokenPath: string): TrainerConfig[] {
  const { precision, ranks, threads, steps } = training;
  const microBatchSize = microBatchOf(training);
  const plain = plainSettings(precision);
  return Array.from({ length: ranks }, (_, rank) => ({
    ...plain,
    model: {
      ...architectureOf(modelConfigOf(training)),
      adapter: adapterOf(training),
      quantization: training.quantization ?? null,
    },
    activation_checkpointing: training.activation_checkpointing ?? false,
    rank,
    world_size: ranks,
    threads,
    zero: { ...plain.zero, ...training.zero },
    param_groups: training.frozen
      ? [{ match: training.frozen, lr_scale: 1, weight_decay: null, frozen: true }]
      : [],
    sequence_length: lengthOf(training),
    micro_batch_size: microBatchSize,
    global_batch_size: (training.leaves ?? LEAVES_PER_STEP) * microBatchSize,
    steps,
    seed: 1,
    data_seed: 1,
    training_files: [{ path: tokenPath, weight: 1 }],
    evaluation_files: [],
    reserved_bytes: 0,
    device: 'cpu',
    comm: { backend: ranks === 1 ? 'solo' : 'gloo', bind_address: '127.0.0.1', timeout_ms: 60_000 },
  }));
}

/** Calls `body` with a temporary file of random tokens of the model's vocabulary. */
export async function withRandomTokens(
  training: Pick<Training, 'config' | 'sequence_length'>,
  body: (tokenPath: string) => Promise<void>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'zerofleet-bench-'));
  try {
    const path = join(directory, 'tokens.bin');
    const { vocab_size } = architectureOf(presets[training.config]);
    const tokens = Array.from(randomFillSync(new Uint16Array(1 << 20)), (token) => token % vocab_size);
    writeFileSync(path, tokenFile(tokens, lengthOf(training)));
    await body(path);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
