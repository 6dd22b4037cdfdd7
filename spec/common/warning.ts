import type { Warning } from '../../contracts/index.js';

/** Of a field that is accepted, and of which nothing comes. */
export function ignoredField(pointer: string, name: string, why: string): Warning {
  return { pointer, code: 'field_without_effect', message: `${name} has no effect: ${why}` };
}
