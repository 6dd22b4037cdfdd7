import type { Execution } from '../../contracts/execution.js';
import type { StoreContext } from '../core/context.js';
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

/**
 * The rendezvous of workers that run the ranks of one job together. The worker that holds the job's lease
 * leads. It seals a world, the members find it here, and from then on they talk to the leader directly.
 *
 * A world is sealed atomically and never changes: other members, or the same ones again, are another world.
 * It is valid as long as the leader's execution and lease last, and until another one is sealed or it is
 * closed.
 */
export type WorldRendezvous = ReturnType<typeof worldRendezvous>;

export function worldRendezvous({ commands, subscriptions, prefix }: StoreContext) {
  return {
    /**
     * Makes a plan the job's world and notifies its members. Repeating it with the same plan changes nothing.
     * @throws `stale_epoch`, `job_final`, `job_not_found`
     */
    async sealWorld(jobId: string, execution: Execution, plan: WorldPlan): Promise<void> {
      await commands.run('seal_world', {
        job_id: jobId,
        execution,
        world_id: plan.world_id,
        plan: JSON.stringify(plan),
        members: plan.members.map(({ worker_id }) => worker_id),
      });
    },

    /** Ends a world. Does nothing when it is no longer the job's world. */
    async closeWorld(jobId: string, worldId: string): Promise<void> {
      await commands.run('close_world', { job_id: jobId, world_id: worldId });
    },

    /** Returns the valid worlds that have the worker as a member. */
    async findWorlds(workerId: string): Promise<SealedWorld[]> {
      const found = await commands.run('find_worlds', { worker: workerId });
      return found.map((entry) => worldOf(entry as WorldReply));
    },

    /**
     * Calls back when there may be a new world for the worker, and when such a message may have been lost.
     * Only a hint: `findWorlds` returns the worlds.
     */
    watchWorlds: (workerId: string, onChange: () => void): Promise<Unsubscribe> =>
      subscriptions.add(`${prefix}:worker:${workerId}:worlds`, onChange),
  };
}

/** Job, execution and plan in the reply of find_worlds.lua. */
type WorldReply = [string, Execution, string];

function worldOf([jobId, execution, plan]: WorldReply): SealedWorld {
  return { ...JSON.parse(plan), job_id: jobId, execution };
}
