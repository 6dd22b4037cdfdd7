import { type Execution, executionOf, isBefore } from '../../../contracts/execution.js';
import {
  MANIFEST_FILE,
  parseCheckpointDirectory,
  type SaveOrder,
} from '../../../formats/checkpoint/layout.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';

/** Contents of one directory of a job's checkpoints. */
export interface StoredSave {
  /** Key of the directory. */
  prefix: string;
  keys: string[];
  /** True if its manifest exists. */
  committed: boolean;
}

/** Lists every save of a job, committed or not, the oldest step first as the store lists them. */
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

/** Removes a save. The manifest is deleted first, so that no manifest ever lacks its shards. */
export async function removeSave(objects: ObjectStore, { prefix, keys }: StoredSave): Promise<void> {
  const manifest = `${prefix}/${MANIFEST_FILE}`;
  await objects.delete([manifest, ...keys.filter((key) => key !== manifest)]);
}

/** Returns the position in a save's name. A name of another form, which no worker writes, comes before all others. */
export function saveIdOf(prefix: string): SaveOrder {
  const { execution, step } =
    parseCheckpointDirectory(prefix.slice(prefix.lastIndexOf('/') + 1)) ?? BEFORE_ALL;
  return { execution, step };
}

const BEFORE_ALL: SaveOrder = { execution: executionOf(0, ''), step: 0 };

/**
 * Returns whether the worker with `execution` may remove a save: its own saves and those of earlier epochs. Saves of a
 * later epoch are excluded, because a worker that was stopped between reading the records and the removal must not
 * remove saves of its successor. Saves of the same epoch with another token are excluded, because one of the two
 * workers has lost the job without knowing it.
 */
export function mayRemove(prefix: string, execution: Execution): boolean {
  const save = saveIdOf(prefix);
  return save.execution === execution || isBefore(save.execution, execution);
}
