import type { FieldError, FieldErrorCode } from '../../contracts/index.js';

/** One broken rule. `suggestion`: what would be accepted, when there is something to say. */
export function fieldError(
  pointer: string,
  code: FieldErrorCode,
  message: string,
  suggestion?: string,
): FieldError {
  return { pointer, code, message, ...(suggestion === undefined ? {} : { suggestion }) };
}

/** The fields of `given` that mean nothing, each as an error that says why. */
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
