import type { FieldError, FieldErrorCode, JobSpec, Warning } from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import { fieldError } from '../common/field-error.js';
import { AUTO } from './key.js';
import { pointerTo, type Readings } from './walk.js';

/** A field of the job document and the value that the configuration gives it. */
export interface Setting {
  /** JSON pointer into the job document. */
  field: string;
  value: unknown;
  /** The key that says it. Undefined: what DeepSpeed does without one; the document's own field goes before it. */
  from?: string;
}

/** What one part of the translation finds. */
export interface Translated {
  settings: Setting[];
  errors: FieldError[];
  warnings?: Warning[];
}

/** The configuration and the document around it, as each part of the translation reads them. */
export class Source {
  constructor(
    private readonly readings: Readings,
    /** The document as it was sent. */
    readonly own: JobSpec,
    /** Ranks that stand for DeepSpeed's number of GPUs: `resources.ranks.preferred`. */
    readonly ranks: number,
  ) {}

  /** What a key says; undefined when it is absent or says "auto". */
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

  /** The settings of keys that become fields one to one; those that are absent or "auto" become none. */
  direct(pairs: readonly (readonly [path: string, field: string])[]): Setting[] {
    return pairs.flatMap(([path, field]) => {
      const value = this.get(path);
      return value === undefined ? [] : [{ field, value, from: path }];
    });
  }
}

/** An error about the value of a key. */
export function keyError(
  path: string,
  code: FieldErrorCode,
  message: string,
  suggestion?: string,
): FieldError {
  return fieldError(pointerTo(path), code, message, suggestion);
}

/** A name that is none of those that are known. */
export function unknownName(path: string, name: string, known: readonly string[]): FieldError {
  return keyError(path, 'unknown_value', `must be one of ${known.join(', ')}`, nearestName(name, known));
}
