import {
  type Checkpoint,
  type CheckpointVerdict,
  isErrorCode,
  ZerofleetError,
} from '../../contracts/index.js';
import { MANIFEST_FILE } from '../../formats/checkpoint/layout.js';
import { type Manifest, type ManifestShard, parseManifest } from '../../formats/checkpoint/manifest.js';
import { verifyShards } from '../../formats/checkpoint/verify.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';

type Problem = CheckpointVerdict['problems'][number];

/** Codes that mean damage of the checkpoint; other codes mean that it could not be read now. */
const DAMAGE: readonly string[] = ['manifest_invalid', 'shard_corrupt', 'object_not_found', 'invalid_range'];

/**
 * Reads all shards of a checkpoint one by one and compares them with the manifest.
 * @throws errors of the object store that do not indicate damage
 */
export async function verifyCheckpoint(
  objects: ObjectStore,
  checkpoint: Checkpoint,
): Promise<CheckpointVerdict> {
  const problems: Problem[] = [];
  const found = async (object: string, work: () => Promise<void>) => {
    try {
      await work();
      return true;
    } catch (error) {
      problems.push(problemOf(object, error));
      return false;
    }
  };
  let bytes = 0;
  let manifest: Manifest | null = null;
  await found(MANIFEST_FILE, async () => {
    manifest = await readManifest(objects, checkpoint);
  });
  for (const shard of shardsOf(manifest)) {
    const one = { shards: [shard] };
    if (await found(shard.file, () => verifyShards(objects, checkpoint.prefix, one))) bytes += shard.bytes;
  }
  return { checkpoint_id: checkpoint.id, valid: problems.length === 0, bytes, problems };
}

async function readManifest(objects: ObjectStore, { id, prefix }: Checkpoint): Promise<Manifest> {
  const manifest = parseManifest(await objects.get(`${prefix}/${MANIFEST_FILE}`));
  if (manifest.id === id) return manifest;
  throw new ZerofleetError('manifest_invalid', `the manifest is that of checkpoint ${manifest.id}`);
}

function shardsOf(manifest: Manifest | null): readonly ManifestShard[] {
  return manifest?.shards ?? [];
}

function problemOf(object: string, error: unknown): Problem {
  const { code, message } = error as { code?: unknown; message: string };
  if (typeof code !== 'string' || !isErrorCode(code) || !DAMAGE.includes(code)) throw error;
  return { object, code, message };
}
