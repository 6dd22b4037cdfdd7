import type { MachineType } from '../../platform/config/autoscale-pools.js';

/** Key of a machine type among those of all pools. */
export const keyOf = (pool: string, type: string): string => `${pool}/${type}`;

/** Returns a pool's type by its name. */
export function typeOf(types: readonly MachineType[], name: string): MachineType {
  const type = types.find((each) => each.name === name);
  if (!type) throw new Error(`no type ${name}`);
  return type;
}
