import type { Checkpoint } from '../../contracts/index.js';
import type { Manifest } from './manifest.js';

/** Returns the job store's record of a checkpoint. */
export function checkpointOf(manifest: Manifest, prefix: string, pinned = false): Checkpoint {
  const { id, job_id, step, world_size, state_digest, eval_loss, shards, committed_at } = manifest;
  const bytes = shards.reduce((sum, shard) => sum + shard.bytes, 0);
  const damaged = false;
  const evaluated = eval_loss === null ? {} : { eval_loss };
  return {
    id,
    job_id,
    step,
    world_size,
    state_digest,
    ...evaluated,
    bytes,
    committed_at,
    pinned,
    damaged,
    prefix,
  };
}
