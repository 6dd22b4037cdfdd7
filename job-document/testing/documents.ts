import type { Dataset, Grader, JobSpec } from '../../contracts/index.js';

/** Dataset of 1000 tokens without content. */
export const DATASET: Dataset = {
  id: 'ds_00000000000000000000000000',
  name: 'text',
  description: '',
  format: 'text',
  bytes: 1000,
  digest: `sha256:${'0'.repeat(64)}`,
  num_documents: 1,
  source: null,
  num_chats: 0,
  num_preferences: 0,
  num_labelled: 0,
  num_prompts: 0,
  num_tokens: 1000,
  max_token: null,
  project: 'default',
  created_at: '2026-01-01T00:00:00.000Z',
};

/** Smallest accepted document. */
export const SMALLEST: JobSpec = {
  model: { preset: 'llama-tiny' },
  data: { dataset: DATASET.id },
  train: { steps: 10 },
};

/** A small model, field by field. */
export const LLAMA = {
  model_type: 'llama',
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  vocab_size: 256,
} as const;

/** A grader that compares an answer with that of its line. */
export const EXACT = {
  type: 'string_check',
  name: 'exact',
  operation: 'eq',
  input: '{{sample.output_text}}',
  reference: '{{item.answer}}',
} as const satisfies Grader;
