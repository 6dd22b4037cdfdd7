import { ZerofleetError } from '../../contracts/index.js';
import { Check, type Static, type TSchema } from '../../platform/schema.js';

/** A function that returns what came over a link as what it must be. It throws `link_protocol` for anything else. */
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
