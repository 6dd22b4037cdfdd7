import type { RetryPolicy } from '../../contracts/rank-protocol.js';

/** Intervals and timeouts of an agent, in milliseconds. Tests only shorten them. */
export interface Timing {
  /** Lease on an attempt, renewed three times per period. Also BullMQ's lock. */
  lease_ms: number;
  /** Interval of BullMQ's check for entries with a lost lock. */
  stalled_interval_ms: number;
  heartbeat_ms: number;
  /** Time without a message after which a rank counts as hanging. */
  silence_ms: number;
  /** Timeout of ranks that wait for each other in one exchange. */
  comm_timeout_ms: number;
  /** Timeout until the workers of a world have joined; data preparation does not count. */
  join_ms: number;
  /** Grace period from a cancellation until ranks that did not stop at a step are killed. */
  cancel_grace_ms: number;
  /** Time after SIGKILL until a process counts as unkillable; freeing much memory takes a while. */
  kill_ms: number;
  /** Grace period of a draining agent for its jobs' saves; after it they are abandoned. */
  drain_ms: number;
  /** Maximum interval between writes of metrics. */
  report_interval_ms: number;
  /** Time without a request after which a model that answers samples is unloaded. */
  model_idle_ms: number;
  /** Delay before a returned queue entry is delivered again. */
  hand_back_ms: number;
  /** Backoff between restarts after errors; the job's `retry.max_errors` limits their number. */
  restart: RetryPolicy;
  /** Longest backoff that keeps the slots; for a longer one the job releases them. */
  restart_in_place_ms: number;
  /** Retries of the agent's reads and small writes in the object store. */
  storage: RetryPolicy;
  save: { periodic: RetryPolicy; final: RetryPolicy };
}

export const DEFAULT_TIMING: Timing = {
  lease_ms: 30_000,
  stalled_interval_ms: 15_000,
  heartbeat_ms: 2_000,
  silence_ms: 30_000,
  comm_timeout_ms: 120_000,
  join_ms: 15_000,
  cancel_grace_ms: 20_000,
  kill_ms: 60_000,
  drain_ms: 50_000,
  report_interval_ms: 500,
  model_idle_ms: 300_000,
  hand_back_ms: 2_000,
  restart: { attempts: Number.MAX_SAFE_INTEGER, first_delay_ms: 500, max_delay_ms: 30_000 },
  restart_in_place_ms: 1_000,
  storage: { attempts: 12, first_delay_ms: 500, max_delay_ms: 60_000 },
  save: {
    periodic: { attempts: 4, first_delay_ms: 500, max_delay_ms: 5_000 },
    final: { attempts: 20, first_delay_ms: 500, max_delay_ms: 60_000 },
  },
};

/** Returns the timing for a configuration. */
export function timingOf({ save_seconds }: { save_seconds: number }): Timing {
  return { ...DEFAULT_TIMING, drain_ms: save_seconds * 1000 };
}

/** Returns the time after which ranks end without a message of their agent: any lease of it has expired by then. */
export function agentSilenceMs({ lease_ms, heartbeat_ms }: Timing): number {
  return lease_ms + heartbeat_ms;
}
