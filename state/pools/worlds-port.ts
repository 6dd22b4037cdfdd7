/**
 * The rendezvous of workers that run the ranks of one job together. The worker that holds the job's lease leads. It seals a world, the
 * members find it here, and from then on they talk to the leader directly.
 *
 * A world is sealed atomically and never changes: other members, or the same ones again, are another world. It is valid as long as the
 * leader's execution and lease last, and until another one is sealed or it is closed.
 */
import type { Execution } from '../../contracts/execution.js';
import type { Unsubscribe } from '../core/subscriptions.js';

/** A worker of a world and the ranks that it runs. */
export interface WorldMember {
  worker_id: string;
  ranks: number[];
}

export interface WorldPlan {
  /** Random; identifies this world. */
  world_id: string;
  /** Random and secret: proves membership to the leader and leadership to members. */
  token: string;
  /** Address at which members reach the leader. */
  leader: { worker_id: string; address: string; port: number };
  /** All workers but the leader. */
  members: WorldMember[];
}

export interface SealedWorld extends WorldPlan {
  job_id: string;
  execution: Execution;
}

export interface WorldRendezvous {
  /**
   * Makes a plan the job's world and notifies its members. Repeating it with the same plan changes nothing.
   * @throws `stale_epoch`, `job_final`, `job_not_found`
   */
  sealWorld(jobId: string, execution: Execution, plan: WorldPlan): Promise<void>;
  /** Ends a world. Does nothing when it is no longer the job's world. */
  closeWorld(jobId: string, worldId: string): Promise<void>;
  /** Returns the valid worlds that have the worker as a member. */
  findWorlds(workerId: string): Promise<SealedWorld[]>;
  /**
   * Calls back when there may be a new world for the worker, and when such a message may have been lost. Only a hint: `findWorlds`
   * returns the worlds.
   */
  watchWorlds(workerId: string, onChange: () => void): Promise<Unsubscribe>;
}
