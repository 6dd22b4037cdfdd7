import type { ResolvedJobSpec } from '../index.js';

/** The uploaded models that a job needs until it has ended. */
export function modelsOf({ model }: ResolvedJobSpec): string[] {
  const { init_from } = model;
  return init_from !== null && 'model' in init_from ? [init_from.model] : [];
}
