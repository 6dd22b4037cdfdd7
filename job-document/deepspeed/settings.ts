import type { FieldError, FieldErrorCode, JobSpec, Warning } from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import { fieldError } from '../common/field-error.js';
import { AUTO } from './key.js';
import { pointerTo, type Readings } from './walk.js';

/** Field of the job document with its value from the configuration. */
export interface Setting {
  /** JSON pointer into the job document. */
  field: string;
  value: unknown;
  /** Key of the value. Undefined for DeepSpeed's default, which the document's own field overrides. */
  from?: string;
}

/** Result of one part of the translation. */
export interface Translated {
  settings: Setting[];
  errors: FieldError[];
  warnings?: Warning[];
}

/** Configuration and surrounding document, as read by each part of the translation. */
export class Source {
  constructor(
    private readonly readings: Readings,
    /** The document as sent. */
    readonly own: JobSpec,
    /** Ranks that stand for DeepSpeed's number of GPUs: `resources.ranks.preferred`. */
    readonly ranks: number,
  ) {}

  /** Returns the value of a key; undefined when it is absent or "auto". */
  get<T>(path: string): T | undefined {
    const value = this.readings.get(path);
    return value === AUTO ? undefined : (value as T | undefined);
  }

  isAuto(path: string): boolean {
    return this.readings.get(path) === AUTO;
  }

  has(path: string): boolean {
    return this.readings.has(path);
  }

  /** Returns the settings of keys that map to fields one to one, without absent and "auto" ones. */
  direct(pairs: readonly (readonly [path: string, field: string])[]): Setting[] {
    return pairs.flatMap(([path, field]) => {
      const value = this.get(path);
      return value === undefined ? [] : [{ field, value, from: path }];
    });
  }
}

/** Returns an error about the value of a key. */
export function keyError(
  path: string,
  code: FieldErrorCode,
  message: string,
  suggestion?: string,
): FieldError {
  return fieldError(pointerTo(path), code, message, suggestion);
}

/** Returns the error of an unknown name. */
export function unknownName(path: string, name: string, known: readonly string[]): FieldError {
  return keyError(path, 'unknown_value', `must be one of ${known.join(', ')}`, nearestName(name, known));
}
