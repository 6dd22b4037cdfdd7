/**
 * Meaning of a key of a DeepSpeed configuration. The tables of this folder give each key one meaning; the
 * translation, the errors and the tables of docs/deepspeed.md are derived from them.
 */
export type ValueType = 'boolean' | 'integer' | 'number' | 'string' | 'list' | 'any';

export type Key =
  /** The key becomes the field of the job document that `to` describes. */
  | { kind: 'mapped'; type: ValueType; to: string }
  /** Any value is accepted without an action; `why` has the reason. */
  | { kind: 'holds'; type: ValueType; why: string }
  /** The key is accepted without effect: a warning has the reason `why`, unless it is disabled. */
  | { kind: 'ignored'; type: ValueType; why: string }
  /** Only these values are accepted; `why` has the reason and the remedy for others. */
  | { kind: 'only'; values: readonly unknown[]; why: string }
  /** A section that is accepted while it is disabled. `keys`: its allowed keys, null for any. */
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

/** Assigns one key to several names. */
export function named(names: readonly string[], key: Key): Keys {
  return Object.fromEntries(names.map((name) => [name, key]));
}

export const AUTO = 'auto';

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
