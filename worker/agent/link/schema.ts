import { ZerofleetError } from '../../../contracts/index.js';
import { Check, type Static, type TSchema } from '../../../platform/schema.js';

/** Returns a function that validates received data against a schema. It throws `link_protocol` for invalid data. */
export function checked<T extends TSchema>(schema: T): (value: unknown) => Static<T> {
  const check = new Check(schema);
  return (value) => {
    if (check.fits(value)) return value;
    throw new ZerofleetError(
      'link_protocol',
      `a message is not one of the protocol: ${check.problems().join('; ')}`,
    );
  };
}
