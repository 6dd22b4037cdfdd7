import type { PoolPod } from '../../contracts/index.js';
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { LaunchProblem, Machine } from '../controller/types.js';

export type { LaunchProblem };

/** Machines of one pool. */
export interface CapacityView {
  machines: Machine[];
  /** Requested machines by type, without those that are leaving. */
  wanted: Record<string, number>;
  problems: LaunchProblem[];
  /** Where machines are pods. */
  pods?: PoolPod[];
}

/**
 * Port to the source of machines. It includes no knowledge of jobs: the caller of `retire` makes sure that
 * the machine is idle.
 *
 * All methods are idempotent. A view shows at least what was requested before through the same object, even
 * if the source reports it later. Errors are those of the source; the request may or may not have taken
 * effect then, which the next view shows.
 */
export interface Capacity {
  /** Reads the machines of all pools, if the source can list them at once. The next views show them. */
  refresh(policies: readonly PoolPolicy[]): Promise<void>;
  view(policy: PoolPolicy): Promise<CapacityView>;
  /**
   * Sets the number of machines of a type, without those that are leaving. Never ends a machine that exists.
   * @param saveSeconds longest save that agents of the pool reported; null: none did
   */
  want(policy: PoolPolicy, type: string, machines: number, saveSeconds: number | null): Promise<void>;
  /**
   * Ends a machine and decrements the size of its type. A machine that is leaving already need not wait any
   * longer.
   */
  retire(policy: PoolPolicy, machine: string): Promise<void>;
  /** Extends the termination of machines that are leaving and still saving, if the source limits it. */
  hold(policy: PoolPolicy, machines: readonly string[]): Promise<void>;
  /** Ends machines that live only as long as this program. Idempotent. */
  close(): Promise<void>;
}
