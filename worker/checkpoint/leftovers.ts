import { type Execution, executionOf, isBefore } from '../../contracts/execution.js';
import { MANIFEST_FILE, parseCheckpointDirectory, type SaveId } from '../../platform/checkpoint/layout.js';
import type { ObjectStore } from '../../platform/object-store/index.js';

/** What lies in one directory of a job's checkpoints. */
export interface StoredSave {
  /** Key of the directory. */
  prefix: string;
  keys: string[];
  /** Whether its manifest is there. */
  committed: boolean;
}

/** Every save of a job, the oldest step first as the store lists them, whether it became a checkpoint or not. */
export async function listSaves(objects: ObjectStore, checkpointsPrefix: string): Promise<StoredSave[]> {
  const saves = new Map<string, StoredSave>();
  for await (const { key } of objects.list(checkpointsPrefix)) {
    const name = key.slice(checkpointsPrefix.length).split('/')[0] ?? '';
    const prefix = `${checkpointsPrefix}${name}`;
    const save = saves.get(prefix) ?? { prefix, keys: [], committed: false };
    save.keys.push(key);
    if (key === `${prefix}/${MANIFEST_FILE}`) save.committed = true;
    saves.set(prefix, save);
  }
  return [...saves.values()];
}

/** Removes a save, its manifest first: at no moment is there a manifest without its shards. */
export async function removeSave(objects: ObjectStore, { prefix, keys }: StoredSave): Promise<void> {
  const manifest = `${prefix}/${MANIFEST_FILE}`;
  await objects.delete([manifest, ...keys.filter((key) => key !== manifest)]);
}

/** What of a save's name says whether it comes before another one. */
export type SavePlace = Pick<SaveId, 'execution' | 'step'>;

/** Before all others when its directory has no such name, which no worker writes. */
export function placeOf(prefix: string): SavePlace {
  const { execution, step } = parseCheckpointDirectory(prefix.slice(prefix.lastIndexOf('/') + 1)) ?? NOWHERE;
  return { execution, step };
}

const NOWHERE: SavePlace = { execution: executionOf(0, ''), step: 0 };

/**
 * Whether the worker that believes to hold the job in `execution` may remove a save: its own, and those of earlier epochs. Never one of a
 * later epoch: a worker that was stopped between its look at the records and the removal must not remove what its successor has written
 * since. Nor one of the same epoch and another token: one of the two has lost the job, and does not know it yet.
 */
export function mayRemove(prefix: string, execution: Execution): boolean {
  const save = placeOf(prefix);
  return save.execution === execution || isBefore(save.execution, execution);
}
