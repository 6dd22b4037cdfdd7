/** Datasets and models in lists, and the runs that use them. */
import type { Job } from '../../../contracts/types.js';

/** Describes how a run uses a dataset or a model; null if it does not. */
export function useOf({ spec }: Pick<Job, 'spec'>, id: string): string | null {
  const { data, model, train } = spec;
  if (data.dataset === id || data.mixture?.some(({ dataset }) => dataset === id)) return 'trains on it';
  if (train.evaluation?.datasets.some(({ dataset }) => dataset === id)) return 'evaluates on it';
  const init = model.init_from;
  if (init !== null && 'model' in init && init.model === id) return 'begins with it';
  return data.tokenizer === id ? 'uses its tokenizer' : null;
}
