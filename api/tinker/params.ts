/** Parameters of Tinker's API in errors of this server's own API. */
import type { ParamNames } from '../openai/errors.js';

/** Parameters by the field that has their value, of a call or of a job document. */
const PARAM_OF: Readonly<Record<string, string>> = {
  rows: 'data',
  lr: 'adam_params.learning_rate',
  betas: 'adam_params',
  eps: 'adam_params.eps',
  weight_decay: 'adam_params.weight_decay',
  gradient_clipping: 'adam_params.grad_clip_norm',
  prompts: 'prompt',
  n: 'num_samples',
  max_tokens: 'sampling_params.max_tokens',
  temperature: 'sampling_params.temperature',
  top_p: 'sampling_params.top_p',
  top_k: 'sampling_params.top_k',
  seed: 'sampling_params.seed',
  stop_tokens: 'sampling_params.stop',
  stop_texts: 'sampling_params.stop',
  checkpoint: 'path',
  labels: 'user_metadata',
  train: 'lora_config',
  model: 'base_model',
};

export const PARAMS: ParamNames = {
  ofField: ({ pointer }) => {
    const [, name = '', ...rest] = pointer.split('/');
    return [PARAM_OF[name] ?? name, ...rest].filter((part) => part !== '').join('.') || null;
  },
  ofCode: { job_not_found: 'model_id', model_not_found: 'base_model', checkpoint_not_found: 'path' },
};
