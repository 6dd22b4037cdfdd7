import type { JobSpec } from '../../contracts/index.js';

/** What a document begins with, as an object. */
export type InitFrom = Exclude<NonNullable<JobSpec['model']['init_from']>, string>;

/** `model.init_from`, which may be a text in place of the one field that it looks like. */
export function initFromOf({ init_from }: Pick<JobSpec['model'], 'init_from'>): InitFrom | undefined {
  if (typeof init_from !== 'string') return init_from;
  if (init_from.startsWith('s3://')) return { uri: init_from };
  return init_from.startsWith('ckpt_') ? { checkpoint: init_from } : { model: init_from };
}
