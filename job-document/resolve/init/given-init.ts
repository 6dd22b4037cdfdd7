import { isSourceUri, type JobSpec } from '../../../contracts/index.js';

/** `model.init_from` as an object. */
export type InitFrom = Exclude<NonNullable<JobSpec['model']['init_from']>, string>;

/** Returns `model.init_from` as an object; a text is a short form. */
export function initFromOf({ init_from }: Pick<JobSpec['model'], 'init_from'>): InitFrom | undefined {
  if (typeof init_from !== 'string') return init_from;
  if (isSourceUri(init_from)) return { uri: init_from };
  return init_from.startsWith('ckpt_') ? { checkpoint: init_from } : { model: init_from };
}
