import type { Execution } from '../../contracts/execution.js';
import type { StoreContext } from '../core/context.js';
import type { SealedWorld, WorldRendezvous } from './worlds-port.js';

export function worldRendezvous({ commands, subscriptions, prefix }: StoreContext): WorldRendezvous {
  return {
    async sealWorld(jobId, execution, plan) {
      await commands.run('seal_world', {
        job_id: jobId,
        execution,
        world_id: plan.world_id,
        plan: JSON.stringify(plan),
        members: plan.members.map(({ worker_id }) => worker_id),
      });
    },

    async closeWorld(jobId, worldId) {
      await commands.run('close_world', { job_id: jobId, world_id: worldId });
    },

    async findWorlds(workerId) {
      const found = await commands.run('find_worlds', { worker: workerId });
      return found.map((entry) => worldOf(entry as WorldReply));
    },

    watchWorlds: (workerId, onChange) => subscriptions.add(`${prefix}:worker:${workerId}:worlds`, onChange),
  };
}

/** Job, execution and plan in the reply of find_worlds.lua. */
type WorldReply = [string, Execution, string];

function worldOf([job_id, execution, plan]: WorldReply): SealedWorld {
  return { ...JSON.parse(plan), job_id, execution };
}
