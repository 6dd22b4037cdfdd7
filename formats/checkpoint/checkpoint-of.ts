import type { Checkpoint } from '../../contracts/index.js';
import type { Manifest } from './manifest.js';

/** Returns the job store's record of a checkpoint. */
export function checkpointOf(manifest: Manifest, prefix: string, pinned = false): Checkpoint {
  const { id, job_id, step, world_size, state_digest, eval_losses, early_stopping, committed_at } = manifest;
  const { shards, reference, made_from } = manifest;
  const bytes = shards.reduce((sum, shard) => sum + shard.bytes, reference?.bytes ?? 0);
  const damaged = false;
  const bestStep = early_stopping?.best_step ?? null;
  return {
    id,
    job_id,
    step,
    world_size,
    state_digest,
    ...(Object.keys(eval_losses).length > 0 && { eval_losses }),
    ...(bestStep !== null && { best_step: bestStep }),
    ...(made_from !== null && { made_from }),
    bytes,
    committed_at,
    pinned,
    damaged,
    prefix,
  };
}
