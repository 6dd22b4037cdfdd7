import { epochOf } from '../../contracts/execution.js';
import { type Checkpoint, ZerofleetError } from '../../contracts/index.js';
import { checkpointOf } from '../../formats/checkpoint/checkpoint-of.js';
import {
  checkpointKey,
  checkpointsPrefix,
  compareSaves,
  desiredKey,
  MANIFEST_FILE,
  parseCheckpointDirectory,
  pinKey,
  resultKey,
  type SaveId,
  type SaveOrder,
  specKey,
} from '../../formats/checkpoint/layout.js';
import { parseManifest } from '../../formats/checkpoint/manifest.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import {
  type DesiredDocument,
  parseDesired,
  parseResult,
  parseSpec,
  type ResultDocument,
  type SpecDocument,
} from '../../state/index.js';

/** State of one job in the object store. */
export interface StoredJob {
  spec: SpecDocument;
  desired: DesiredDocument | null;
  result: ResultDocument | null;
  /** Committed and readable, the oldest step first. */
  checkpoints: Checkpoint[];
  /** Highest epoch found. */
  epoch: number;
}

/** Called with the key of each unusable document and the reason. */
type OnUnusable = (key: string, error: ZerofleetError) => void;

/** Yields the ids of all jobs with the keys of each, without shards, whose number is unbounded. */
export async function* jobKeys(objects: ObjectStore): AsyncGenerator<{ id: string; keys: Set<string> }> {
  const all = 'jobs/';
  let current = { id: '', keys: new Set<string>() };
  // Keys are listed in ascending order, so all keys of a job are adjacent.
  for await (const { key } of objects.list(all)) {
    const id = key.slice(all.length).split('/')[0] ?? '';
    if (current.id !== id) {
      if (current.keys.size > 0) yield current;
      current = { id, keys: new Set() };
    }
    if (!key.endsWith('.safetensors')) current.keys.add(key);
    else if (key.startsWith(checkpointsPrefix(id))) current.keys.add(key.slice(0, key.lastIndexOf('/')));
  }
  if (current.keys.size > 0) yield current;
}

/**
 * Reads the state of a job. Returns null for a job that was never accepted: its creation was interrupted
 * before it was recorded and acknowledged.
 */
export async function readStoredJob(
  objects: ObjectStore,
  id: string,
  keys: ReadonlySet<string>,
  onUnusable: OnUnusable,
): Promise<StoredJob | null> {
  const read = async <T>(key: string, parse: (bytes: Uint8Array) => T): Promise<T | null> => {
    if (!keys.has(key)) return null;
    try {
      return parse(await objects.get(key));
    } catch (error) {
      if (!(error instanceof ZerofleetError) || error.kind.retryable) throw error;
      onUnusable(key, error);
      return null;
    }
  };
  const spec = await read(specKey(id), parseSpec);
  if (!spec) return null;
  const desired = await read(desiredKey(id), parseDesired);
  const result = await read(resultKey(id), parseResult);
  const directories = saveDirectories(id, keys);
  const orders = new Map<Checkpoint, SaveOrder>();
  for (const { key, save } of directories) {
    const manifest = await read(`${key}/${MANIFEST_FILE}`, parseManifest);
    if (manifest)
      orders.set(checkpointOf(manifest, key, keys.has(pinKey(key))), { ...save, id: manifest.id });
  }
  const checkpoints = [...orders]
    .sort(([, a], [, b]) => compareSaves(a, b))
    .map(([checkpoint]) => checkpoint);
  const ran = directories.length > 0 || result !== null;
  if (!ran && desired === null && spec.format_version !== 1) return null;
  const epochs = [
    desired?.epoch ?? 0,
    result?.epoch ?? 0,
    ...directories.map(({ save }) => epochOf(save.execution)),
  ];
  return { spec, desired, result, checkpoints, epoch: Math.max(...epochs) };
}

/** Returns the directory of every save, committed or not. */
function saveDirectories(id: string, keys: ReadonlySet<string>): { key: string; save: SaveId }[] {
  const prefix = checkpointsPrefix(id);
  const names = new Set<string>();
  for (const key of keys) if (key.startsWith(prefix)) names.add(key.slice(prefix.length).split('/')[0] ?? '');
  return [...names].flatMap((name) => {
    const save = parseCheckpointDirectory(name);
    return save ? [{ key: checkpointKey(id, name), save }] : [];
  });
}
