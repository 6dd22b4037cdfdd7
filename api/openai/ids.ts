import { notFound } from '../access/found.js';

const PREFIXES = { job: 'job', dataset: 'ds', model: 'mdl', checkpoint: 'ckpt', upload: 'upl' } as const;
type Kind = keyof typeof PREFIXES;

const FORM = /^([a-z]+)_[0-9A-HJKMNP-TV-Z]{26}$/;

/** True if any record may have the id. */
export function isAnyId(id: string): boolean {
  return FORM.test(id);
}

/** True if records of this kind may have the id. */
export function isId(kind: Kind, id: string): boolean {
  return FORM.exec(id)?.[1] === PREFIXES[kind];
}

/** Returns the id of a path. @throws ZerofleetError `…_not_found` for one that no record can have */
export function requireId(kind: Kind, id: string): string {
  if (isId(kind, id)) return id;
  throw notFound(kind, id);
}
