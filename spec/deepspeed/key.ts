/**
 * What can be said of a key of a DeepSpeed configuration. The tables of this room give each key one of these; the
 * translation, the errors and the tables of docs/deepspeed.md all come from them.
 */
export type ValueType = 'boolean' | 'integer' | 'number' | 'string' | 'list' | 'any';

export type Key =
  /** It becomes a field of the job document; `to` names it for people. */
  | { kind: 'mapped'; type: ValueType; to: string }
  /** Whatever its value, nothing has to be done for it here; `why` says why. */
  | { kind: 'holds'; type: ValueType; why: string }
  /** It is taken, and nothing comes of it: a warning says `why`, unless it is switched off. */
  | { kind: 'ignored'; type: ValueType; why: string }
  /** Only these values have a meaning here; `why` says what stands in the way of the others, and what to do. */
  | { kind: 'only'; values: readonly unknown[]; why: string }
  /** A section that may be there as long as it is not enabled. `keys`: what it may hold, null for anything. */
  | { kind: 'off'; keys: readonly string[] | null; why: string }
  | { kind: 'refused'; why: string }
  | { kind: 'section'; keys: Keys };

export type Keys = { readonly [name: string]: Key };

export const mapped = (type: ValueType, to: string): Key => ({ kind: 'mapped', type, to });
export const holds = (type: ValueType, why: string): Key => ({ kind: 'holds', type, why });
export const ignored = (type: ValueType, why: string): Key => ({ kind: 'ignored', type, why });
export const only = (values: readonly unknown[], why: string): Key => ({ kind: 'only', values, why });
export const off = (why: string, keys: readonly string[] | null = null): Key => ({ kind: 'off', keys, why });
export const refused = (why: string): Key => ({ kind: 'refused', why });
export const section = (keys: Keys): Key => ({ kind: 'section', keys });

/** The same key under several names. */
export function named(names: readonly string[], key: Key): Keys {
  return Object.fromEntries(names.map((name) => [name, key]));
}

export const AUTO = 'auto';

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
