import type { FieldError, Warning } from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import { fieldError } from '../common/field-error.js';
import { ignoredField } from '../common/warning.js';
import { AUTO, ignored, isObject, type Key, type Keys, type ValueType } from './key.js';

/** Values of a configuration by path, such as `fp16.enabled`, without absent and null ones. */
export type Readings = Map<string, unknown>;

interface Walked {
  readings: Readings;
  errors: FieldError[];
  /** Warnings of keys without effect. */
  warnings: Warning[];
}

/** Returns the JSON pointer of a key from its dotted path. */
export function pointerTo(path: string): string {
  return ['/deepspeed_config', ...path.split('.').filter(Boolean)].join('/');
}

/**
 * Checks a part of a configuration against a table: every key must be known, have the right type and be
 * supported.
 *
 * @param at dotted path of the part; empty for the whole
 */
export function walk(config: unknown, keys: Keys, at = ''): Walked {
  const readings: Readings = new Map();
  const errors: FieldError[] = [];
  const warnings: Warning[] = [];
  const walked = { readings, errors, warnings };
  if (!isObject(config)) return { ...walked, errors: [wrongType(at, 'an object')] };
  for (const [name, value] of Object.entries(config)) {
    const path = at === '' ? name : `${at}.${name}`;
    const key = Object.hasOwn(keys, name) ? keys[name] : commentAt(at, name);
    if (key === undefined) errors.push(unknownKey(path, name, Object.keys(keys)));
    else if (value !== null) readKey({ path, name, value, key }, walked);
  }
  return walked;
}

/** DeepSpeed ignores unknown names at the top level, and none of its own begins with an underscore. */
function commentAt(at: string, name: string): Key | undefined {
  return at === '' && name.startsWith('_') ? ignored('any', 'it is a comment') : undefined;
}

interface Found {
  path: string;
  name: string;
  value: unknown;
  key: Key;
}

function readKey({ path, name, value, key }: Found, { readings, errors, warnings }: Walked): void {
  switch (key.kind) {
    case 'mapped':
      if (value === AUTO || hasType(value, key.type)) readings.set(path, value);
      else errors.push(wrongType(path, ARTICLES[key.type]));
      return;
    case 'ignored':
    case 'holds':
      if (value !== AUTO && !hasType(value, key.type)) errors.push(wrongType(path, ARTICLES[key.type]));
      else if (key.kind === 'ignored' && isOn(value))
        warnings.push(ignoredField(pointerTo(path), name, key.why));
      return;
    case 'only':
      if (value !== AUTO && !key.values.includes(value)) errors.push(unsupported(path, name, key.why));
      return;
    case 'refused':
      if (value !== false) errors.push(unsupported(path, name, key.why));
      return;
    case 'off':
      errors.push(...readSwitchedOff(path, name, value, key));
      return;
    case 'section': {
      const inner = walk(value, key.keys, path);
      for (const [innerPath, reading] of inner.readings) readings.set(innerPath, reading);
      errors.push(...inner.errors);
      warnings.push(...inner.warnings);
    }
  }
}

/** Returns whether a key or a section is enabled; a section without a switch is enabled by its presence. */
function isOn(value: unknown): boolean {
  if (!isObject(value)) return value !== false;
  return 'enabled' in value ? value.enabled !== false : Object.keys(value).length > 0;
}

/** Checks a section that is accepted as long as nothing in it is enabled. */
function readSwitchedOff(
  path: string,
  name: string,
  value: unknown,
  { why, keys }: Extract<Key, { kind: 'off' }>,
): FieldError[] {
  if (value === false) return [];
  if (!isObject(value)) return [wrongType(path, 'an object')];
  const errors = isOn(value) ? [unsupported(path, name, why)] : [];
  if (keys === null) return errors;
  const known = ['enabled', ...keys];
  const unexpected = Object.keys(value).filter((inner) => !known.includes(inner));
  return [...errors, ...unexpected.map((inner) => unknownKey(`${path}.${inner}`, inner, known))];
}

const ARTICLES: Readonly<Record<ValueType, string>> = {
  boolean: 'a boolean',
  integer: 'an integer',
  number: 'a number',
  string: 'a string',
  list: 'a list',
  any: 'any value',
};

function hasType(value: unknown, type: ValueType): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value);
    case 'number':
      return Number.isFinite(value);
    case 'list':
      return Array.isArray(value);
    case 'any':
      return true;
    default:
      return typeof value === type;
  }
}

function wrongType(path: string, wanted: string): FieldError {
  return fieldError(pointerTo(path), 'wrong_type', `must be ${wanted}`);
}

function unsupported(path: string, name: string, why: string): FieldError {
  return fieldError(pointerTo(path), 'deepspeed_key_unsupported', `${name}: ${why}`);
}

function unknownKey(path: string, name: string, known: readonly string[]): FieldError {
  const message = `${name} is not a key of a DeepSpeed configuration`;
  return fieldError(pointerTo(path), 'deepspeed_key_unknown', message, nearestName(name, known));
}
