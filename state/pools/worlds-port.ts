/**
 * The rendezvous of agents that run the ranks of one job together. The agent that holds the job's lease leads; it seals a
 * world, the members find it here, and from then on they talk to the leader directly.
 *
 * A world is sealed in one step and never changes: other members, or the same ones once more, are another world. It counts
 * as long as the leader's execution and lease last, and until another one is sealed or it is closed.
 */
import type { Execution } from '../../contracts/execution.js';
import type { Unsubscribe } from '../core/subscriptions.js';

/** An agent of a world and the ranks that it runs. */
export interface WorldMember {
  worker_id: string;
  ranks: number[];
}

export interface WorldPlan {
  /** Random; tells this world from all others. */
  world_id: string;
  /** Random and secret: who knows it is a member, or the leader. */
  token: string;
  /** Where members reach the leader. */
  leader: { worker_id: string; address: string; port: number };
  /** All agents but the leader. */
  members: WorldMember[];
}

export interface SealedWorld extends WorldPlan {
  job_id: string;
  execution: Execution;
  /** Counts the worlds of the job, over all epochs. */
  generation: number;
}

export interface WorldRendezvous {
  /**
   * Makes a plan the job's world and tells its members. Repeating it with the same plan changes nothing.
   * @throws `stale_epoch`, `job_final`, `job_not_found`
   */
  sealWorld(jobId: string, execution: Execution, plan: WorldPlan): Promise<SealedWorld>;
  /** The world has ended. Nothing happens when it is not the job's world any more. */
  closeWorld(jobId: string, worldId: string): Promise<void>;
  /** The worlds that count now and have the worker as a member. */
  findWorlds(workerId: string): Promise<SealedWorld[]>;
  /**
   * Calls back when there may be a new world for the worker, and when such a message may have been lost. Only a hint:
   * `findWorlds` says what there is.
   */
  watchWorlds(workerId: string, onChange: () => void): Promise<Unsubscribe>;
}
