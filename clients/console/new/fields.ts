/** Fields of the form. */
import type { Path } from '../parts/fields.js';

export interface NumberField {
  path: Path;
  label: string;
}

/** The length of the training: passes through the data, or steps. */
export const LENGTHS = [
  { name: 'epochs', label: 'Epochs' },
  { name: 'steps', label: 'Steps' },
];

export const TRAINING: readonly NumberField[] = [
  { path: ['train', 'sequence_length'], label: 'Sequence length' },
  { path: ['train', 'global_batch_size'], label: 'Batch size' },
  { path: ['train', 'micro_batch_size'], label: 'Micro-batch size' },
  { path: ['train', 'optimizer', 'lr'], label: 'Learning rate' },
  { path: ['checkpoint', 'every_steps'], label: 'Checkpoint every … steps' },
];

export const ADAPTER: readonly NumberField[] = [
  { path: ['train', 'adapter', 'rank'], label: 'Rank' },
  { path: ['train', 'adapter', 'alpha'], label: 'Alpha' },
];

export const VALIDATION: readonly NumberField[] = [
  { path: ['data', 'validation_fraction'], label: 'Share for validation' },
];

export const EVALUATION: readonly NumberField[] = [
  { path: ['train', 'evaluation', 'every_steps'], label: 'Evaluate every … steps' },
];

/** Of reinforcement learning. */
export const ROLLOUTS: readonly NumberField[] = [
  { path: ['train', 'objective', 'prompts_per_step'], label: 'Prompts of a step' },
  { path: ['train', 'objective', 'group_size'], label: 'Answers to a prompt' },
  { path: ['train', 'objective', 'max_tokens'], label: 'Longest answer in tokens' },
  { path: ['train', 'objective', 'temperature'], label: 'Temperature' },
];

export const RANKS: readonly NumberField[] = [
  { path: ['resources', 'ranks', 'preferred'], label: 'Ranks to begin with' },
  { path: ['resources', 'ranks', 'min'], label: 'At least' },
  { path: ['resources', 'ranks', 'max'], label: 'At most' },
];

export const PATHS = {
  name: ['name'],
  dataset: ['data', 'dataset'],
  template: ['data', 'chat_template'],
  packing: ['data', 'packing'],
  model: ['model'],
  initFrom: ['model', 'init_from'],
  restore: ['model', 'init_from', 'restore'],
  adapter: ['train', 'adapter'],
  objective: ['train', 'objective', 'type'],
  beta: ['train', 'objective', 'beta'],
  grader: ['train', 'objective', 'grader'],
  precision: ['train', 'precision'],
  prompts: ['checkpoint', 'samples', 'prompts'],
  sampleTokens: ['checkpoint', 'samples', 'max_tokens'],
  pool: ['resources', 'pool'],
  format: ['export', 'format'],
  dtype: ['export', 'dtype'],
  tensorboard: ['export', 'tensorboard'],
  integrations: ['integrations'],
} satisfies Record<string, Path>;

/** The value of a number field: a number, nothing, or what was entered instead, which the server refuses by name. */
export function numberIn(text: string): number | string | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : trimmed;
}
