import type { Checkpoint } from '../../contracts/index.js';
import type { Manifest } from './manifest.js';

/** Returns the job store's record of a checkpoint. */
export function checkpointOf(manifest: Manifest, prefix: string, pinned = false): Checkpoint {
  const { id, job_id, step, world_size, state_digest, shards, committed_at } = manifest;
  const bytes = shards.reduce((sum, shard) => sum + shard.bytes, 0);
  const damaged = false;
  return { id, job_id, step, world_size, state_digest, bytes, committed_at, pinned, damaged, prefix };
}
