import type { FieldError, FieldErrorCode } from '../../contracts/index.js';

/** Returns the error of a broken rule. `suggestion`: an accepted value, if there is one. */
export function fieldError(
  pointer: string,
  code: FieldErrorCode,
  message: string,
  suggestion?: string,
): FieldError {
  return { pointer, code, message, ...(suggestion === undefined ? {} : { suggestion }) };
}

/** Returns an error for each field of `given` without effect, with the reason. */
export function withoutEffect(
  at: string,
  given: object | undefined,
  meaningful: ReadonlySet<string>,
  why: string,
): FieldError[] {
  return Object.entries(given ?? {})
    .filter(([name, value]) => value !== undefined && !meaningful.has(name))
    .map(([name]) => fieldError(`${at}/${name}`, 'field_without_effect', `${name} has no effect ${why}`));
}
