/** Control state of a job, from the fields of its record. */
import type { JobState } from '../../contracts/index.js';
import type { WorkerSlots } from '../pools/pools-port.js';
import type { Control } from './attempts-port.js';

/** Fields for the control state, in the order of the reply of `renew_lease`. Some exist only after the first request. */
export const CONTROL_FIELDS = [
  'state',
  'save_requested',
  'save_completed',
  'requested_ranks',
  'overrides',
  'preemption_request',
  'placements',
  'move',
] as const;

export type ControlFields = Partial<Record<(typeof CONTROL_FIELDS)[number], string | null>>;

/** Names the values of CONTROL_FIELDS. */
export function controlFields(values: readonly (string | null | undefined)[]): ControlFields {
  return Object.fromEntries(CONTROL_FIELDS.map((field, i) => [field, values[i]]));
}

/**
 * Returns the control state. The job's state encodes the user's request: a request moves a job that a worker holds to `pausing` or
 * `cancelling`.
 */
export function controlOf(fields: ControlFields): Control {
  const {
    state,
    save_requested,
    save_completed,
    requested_ranks,
    overrides,
    preemption_request,
    placements,
    move,
  } = fields;
  const requested = Number(save_requested ?? 0);
  return {
    desired: state === 'pausing' ? 'pause' : state === 'cancelling' ? 'cancel' : 'run',
    state: state as JobState,
    save_request: requested > Number(save_completed ?? 0) ? requested : 0,
    requested_ranks: Number(requested_ranks),
    overrides: overrides ?? '',
    // A reply of `renew_lease` has the number 0 where the record has the text '0'.
    preemption_request: (preemption_request ?? '') === '' ? null : Number(preemption_request),
    held_ranks: countRanks(placements ? JSON.parse(placements) : []),
    moves: (move ?? '') !== '',
  };
}

/** Returns the number of ranks in all placements. */
export function countRanks(placements: readonly WorkerSlots[]): number {
  return placements.reduce((ranks, { slots }) => ranks + slots, 0);
}
