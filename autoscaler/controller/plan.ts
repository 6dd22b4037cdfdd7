/** Plan of one decision about a pool: what there is, and what is decided so far. */
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { Gangs } from './gangs.js';
import type { KnownMachine, KnownType, Observation } from './observe.js';
import type { PoolSnapshot, PoolState, RetireReason } from './types.js';

/** Present and requested machines of one type. */
export interface TypePlan extends KnownType {
  /** Machines that stay. */
  staying: KnownMachine[];
  /** Requested machines whose agents have registered but which are not listed yet. */
  unlisted: number;
  /** Requested machines that do not exist yet. */
  requested: number;
}

export interface Plan {
  policy: PoolPolicy;
  snapshot: PoolSnapshot;
  observation: Observation;
  now: number;
  spent: PoolState['spent'];
  gangs: Gangs;
  types: Map<string, TypePlan>;
  retired: Map<string, RetireReason>;
}

/** Counts the machines of a type that stay or are requested. */
export const machinesOf = ({ staying, unlisted, requested }: TypePlan) =>
  staying.length + unlisted + requested;

/** Counts the ranks that machines have or will have. */
export function presentRanks({ observation, types }: Plan): number {
  const ofTypes = [...types.values()].map(
    ({ type, staying, requested }) =>
      requested * type.slots + staying.reduce((sum, { ranks }) => sum + ranks, 0),
  );
  return observation.static_ranks + ofTypes.reduce((sum, ranks) => sum + ranks, 0);
}
