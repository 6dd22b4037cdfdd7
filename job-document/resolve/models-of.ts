import type { ResolvedJobSpec } from '../../contracts/index.js';
import { tokenizerModel } from './tokenizer.js';

/**
 * Returns the uploaded models that a job needs until it has ended, and that of its base (`baseOf`), until it is
 * deleted.
 */
export function modelsOf({ model, data }: ResolvedJobSpec): string[] {
  const { init_from, base } = model;
  const ids = [init_from, base].flatMap((from) => (from && 'model' in from ? [from.model] : []));
  const tokenizer = tokenizerModel(data);
  return [...new Set(tokenizer === null ? ids : [...ids, tokenizer])];
}

/** Returns the id of the model or checkpoint with the base of a job's adapters; null for none, or one of a seed. */
export function baseOf({ model: { base } }: ResolvedJobSpec): string | null {
  if (base === undefined || 'seed' in base) return null;
  return 'model' in base ? base.model : base.checkpoint;
}
