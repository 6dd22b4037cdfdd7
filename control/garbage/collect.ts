/**
 * Finds folders in the whole object store that no record and no committed document refers to, and removes
 * them after a grace period. Each leftover is checked again right before its removal. With an empty job
 * store, or during a rebuild, nothing is removed.
 */
import type { GarbageGuard } from '../../state/index.js';
import { changedAt, type Folder, foldersOf, isUnchanged, ROOTS, sameFolder } from './folders.js';
import { type Leftover, leftoverOf, type Stores } from './judge.js';
import { type ReservationStores, releaseGone } from './reservations.js';

export interface CollectOptions {
  store: Stores['store'] & Pick<GarbageGuard, 'readyForCollection'> & ReservationStores['store'];
  objects: Stores['objects'];
  /** Grace period, longer than any upload, save or export. Folders written within it stay. */
  grace_ms: number;
  /** True to remove nothing. */
  dry_run?: boolean;
  /** Stops garbage collection early. */
  signal?: AbortSignal;
  /** Called with each leftover. */
  onFound?(found: FoundLeftover): void;
}

export interface FoundLeftover {
  kind: NonNullable<Leftover>;
  key: string;
  objects: number;
  bytes: number;
  /** Time of the last write; RFC 3339. */
  changed_at: string;
}

export interface Collected {
  /** Reason why garbage collection was skipped; null if it was not. */
  skipped: 'empty' | 'restoring' | null;
  leftovers: number;
  objects: number;
  bytes: number;
  /** Multipart uploads that were begun and never completed. */
  uploads: number;
}

/** Grace period of the server and the command. */
export const DEFAULT_GRACE_MS = 24 * 3_600_000;

/** @throws errors of the stores; removals until then were correct */
export async function collectGarbage(options: CollectOptions): Promise<Collected> {
  const { store, objects, grace_ms, dry_run = false, signal, onFound } = options;
  const collected: Collected = { skipped: null, leftovers: 0, objects: 0, bytes: 0, uploads: 0 };
  const ready = await store.readyForCollection();
  if (ready !== 'ready') return { ...collected, skipped: ready };
  const before = Date.now() - grace_ms;
  for (const root of ROOTS) {
    for await (const folder of foldersOf(objects, root)) {
      if (signal?.aborted) return collected;
      const found = await find({ store, objects }, folder, before);
      if (!found || !(dry_run || (await remove(options, folder, before)))) continue;
      collected.leftovers += 1;
      collected.objects += found.objects;
      collected.bytes += found.bytes;
      onFound?.(found);
    }
    const only = { began_before: new Date(before), only_count: dry_run };
    collected.uploads += await objects.abandonUploads(root, only);
  }
  if (!dry_run) await releaseGone({ store, objects }, before);
  return collected;
}

async function find(stores: Stores, folder: Folder, before: number): Promise<FoundLeftover | null> {
  const changed = changedAt(folder);
  if (changed > before) return null;
  const kind = await leftoverOf(stores, folder);
  if (!kind) return null;
  const bytes = folder.objects.reduce((sum, object) => sum + object.bytes, 0);
  const at = new Date(changed).toISOString();
  return { kind, key: folder.key, objects: folder.objects.length, bytes, changed_at: at };
}

/** Removes a leftover, unless it or its records have changed since it was listed. */
async function remove({ store, objects }: CollectOptions, folder: Folder, before: number): Promise<boolean> {
  if ((await store.readyForCollection()) !== 'ready') return false;
  const now = await sameFolder(objects, folder);
  if (!now || !isUnchanged(folder, now) || !(await find({ store, objects }, now, before))) return false;
  await objects.delete(now.objects.map(({ key }) => key));
  return true;
}
