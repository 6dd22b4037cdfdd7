import type { Warning } from '../../contracts/index.js';

/** Returns the warning of an accepted field without effect. */
export function ignoredField(pointer: string, name: string, why: string): Warning {
  return { pointer, code: 'field_without_effect', message: `${name} has no effect: ${why}` };
}
