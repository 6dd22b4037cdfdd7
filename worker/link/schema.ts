import type { Static, TSchema } from '@sinclair/typebox';
import { Ajv } from 'ajv';
import { ZerofleetError } from '../../contracts/index.js';

const ajv = new Ajv();

/** A function that returns what came over a link as what it must be. It throws `link_protocol` for anything else. */
export function checked<T extends TSchema>(schema: T): (value: unknown) => Static<T> {
  const isValid = ajv.compile<Static<T>>(schema);
  return (value) => {
    if (isValid(value)) return value;
    throw new ZerofleetError(
      'link_protocol',
      `a message is not one of the protocol: ${ajv.errorsText(isValid.errors)}`,
    );
  };
}
