import type { ResolvedJobSpec } from '../../contracts/index.js';
import { tokenizerModel } from './tokenizer.js';

/** Returns the uploaded models that a job needs until it has ended. */
export function modelsOf({ model, data }: ResolvedJobSpec): string[] {
  const { init_from } = model;
  const ids = [init_from !== null && 'model' in init_from ? init_from.model : null, tokenizerModel(data)];
  return [...new Set(ids.filter((id) => id !== null))];
}
