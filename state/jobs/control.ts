/** Control state of a job, from the fields of its record. */
import type { JobState } from '../../contracts/index.js';
import type { WorkerSlots } from '../pools/scheduling.js';

/** State that the user requested; the worker that holds the job acts on it at the next step boundary. */
export type Desired = 'run' | 'pause' | 'cancel';

/** Control state of a job, small enough to read at every heartbeat. */
export interface Control {
  desired: Desired;
  state: JobState;
  /** Number of the newest checkpoint request that no checkpoint has answered; 0 for none. */
  save_request: number;
  /** Ranks that the job should run on when enough slots are free. */
  requested_ranks: number;
  /** `documentHash` of the overrides in the job's document. */
  overrides: string;
  /** Preemption request: ranks to shrink to for a waiting job; 0: release all. Null: no request. */
  preemption_request: number | null;
  /** Ranks that the job has slots for: more than its generation runs when the scheduler let it grow. */
  held_ranks: number;
  /** True if slots on other workers are reserved for its next generation. */
  moves: boolean;
}

/**
 * Fields for the control state, in the order of the reply of `renew_lease`. Some exist only after the first request.
 */
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

type ControlFields = Partial<Record<(typeof CONTROL_FIELDS)[number], string | null>>;

/** Names the values of CONTROL_FIELDS. */
export function controlFields(values: readonly (string | null | undefined)[]): ControlFields {
  return Object.fromEntries(CONTROL_FIELDS.map((field, i) => [field, values[i]]));
}

/**
 * Returns the control state. The job's state encodes the user's request: a request moves a job that a worker holds to
 * `pausing` or `cancelling`.
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
