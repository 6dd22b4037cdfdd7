import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { Machine } from '../controller/types.js';

/** The machines of one pool. */
export interface CapacityView {
  machines: Machine[];
  /** Machines that were asked for, by type; those that are leaving are not among them. */
  wanted: Record<string, number>;
}

/**
 * The port to wherever machines come from. It knows nothing of jobs: whoever calls `retire` has made sure that nothing runs there.
 *
 * Every method may be repeated. A view never shows less than what was asked for through the same object before, even where the
 * source behind it tells of that only later. Errors are those of the source; what was asked for may or may not be done then, and
 * the next look tells.
 */
export interface Capacity {
  view(policy: PoolPolicy): Promise<CapacityView>;
  /** So many machines of a type in all, those that are leaving not counted. Never ends one that has appeared. */
  want(policy: PoolPolicy, type: string, machines: number): Promise<void>;
  /** Ends a machine and wants one fewer of its type; one that is leaving already need not wait any longer. */
  retire(policy: PoolPolicy, machine: string): Promise<void>;
  /** Machines that are leaving and still save: where the source would end them after some time, it is asked for more of it. */
  hold(policy: PoolPolicy, machines: readonly string[]): Promise<void>;
  /** Ends what lives only as long as this program. Idempotent. */
  close(): Promise<void>;
}
