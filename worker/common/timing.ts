import type { RetryPolicy } from '../../contracts/rank-protocol.js';

/** Every period and patience of an agent, in milliseconds. Tests shorten them; nothing else differs there. */
export interface Timing {
  /** Lease on an attempt; renewed three times in each. Also BullMQ's lock. */
  lease_ms: number;
  /** How often BullMQ looks for entries whose lock was lost. */
  stalled_interval_ms: number;
  heartbeat_ms: number;
  /** Silence of a rank after which it counts as hanging. */
  silence_ms: number;
  /** How long ranks wait for each other in one exchange. */
  comm_timeout_ms: number;
  /** How long the workers of a world may take to come together; preparing data does not count. */
  join_ms: number;
  /** From a cancellation to the killing of ranks that did not stop at a step. */
  cancel_grace_ms: number;
  /** From SIGKILL until a process that is still there counts as one that can't be killed; one with much memory takes a while. */
  kill_ms: number;
  /** How long a draining agent lets its jobs save before it abandons them. */
  drain_ms: number;
  /** Metrics are written at least this often. */
  report_interval_ms: number;
  /** Before an entry is looked at again that can't run here now. */
  hand_back_ms: number;
  /** Pauses between restarts after errors; how many there may be is the job's `retry.max_errors`. */
  restart: RetryPolicy;
  /** A pause up to this long is waited for in place; for a longer one the job gives its slots back. */
  restart_in_place_ms: number;
  /** Reads and small writes in the object store by the agent. */
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
  hand_back_ms: 2_000,
  restart: { attempts: Number.MAX_SAFE_INTEGER, first_delay_ms: 500, max_delay_ms: 30_000 },
  restart_in_place_ms: 1_000,
  storage: { attempts: 12, first_delay_ms: 500, max_delay_ms: 60_000 },
  save: {
    periodic: { attempts: 4, first_delay_ms: 500, max_delay_ms: 5_000 },
    final: { attempts: 20, first_delay_ms: 500, max_delay_ms: 60_000 },
  },
};

/** What a configuration says of it. */
export function timingOf({ save_seconds }: { save_seconds: number }): Timing {
  return { ...DEFAULT_TIMING, drain_ms: save_seconds * 1000 };
}

/** For so long ranks bear with an agent that says nothing: any lease that it had is over then. */
export function agentSilenceMs({ lease_ms, heartbeat_ms }: Timing): number {
  return lease_ms + heartbeat_ms;
}
