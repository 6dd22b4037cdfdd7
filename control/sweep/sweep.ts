/**
 * Finds what no record and no committed document points to, in the whole object store, and removes it after a grace time. Each
 * leftover is looked at again right before it goes. With an empty job store, or while one is being rebuilt, nothing is touched.
 */
import type { SweepGuard } from '../../state/index.js';
import { changedAt, type Folder, foldersOf, isUnchanged, ROOTS, sameFolder } from './folders.js';
import { type Leftover, leftoverOf, type Stores } from './judge.js';
import { type ReservationStores, releaseGone } from './reservations.js';

export interface SweepOptions {
  store: Stores['store'] & Pick<SweepGuard, 'readyForSweep'> & ReservationStores['store'];
  objects: Stores['objects'];
  /** Longer than any upload, save or export takes: what was written to since then is left alone. */
  grace_ms: number;
  /** Nothing is removed. */
  dry_run?: boolean;
  /** Ends it early. */
  signal?: AbortSignal;
  /** Called with each leftover. */
  onFound?(found: FoundLeftover): void;
}

export interface FoundLeftover {
  what: NonNullable<Leftover>;
  key: string;
  objects: number;
  bytes: number;
  /** When it was last written to; RFC 3339. */
  changed_at: string;
}

export interface Swept {
  /** Why nothing was looked at; null when it was. */
  skipped: 'empty' | 'restoring' | null;
  leftovers: number;
  objects: number;
  bytes: number;
  /** Uploads in parts that were begun and never ended. */
  uploads: number;
}

/** The grace time of the server and the command. */
export const DEFAULT_GRACE_MS = 24 * 3_600_000;

/** @throws errors of the stores; what was removed until then was rightly removed */
export async function sweep(options: SweepOptions): Promise<Swept> {
  const { store, objects, grace_ms, dry_run = false, signal, onFound } = options;
  const swept: Swept = { skipped: null, leftovers: 0, objects: 0, bytes: 0, uploads: 0 };
  const ready = await store.readyForSweep();
  if (ready !== 'ready') return { ...swept, skipped: ready };
  const before = Date.now() - grace_ms;
  for (const root of ROOTS) {
    for await (const folder of foldersOf(objects, root)) {
      if (signal?.aborted) return swept;
      const found = await find({ store, objects }, folder, before);
      if (!found || !(dry_run || (await remove(options, folder, before)))) continue;
      swept.leftovers += 1;
      swept.objects += found.objects;
      swept.bytes += found.bytes;
      onFound?.(found);
    }
    const only = { began_before: new Date(before), only_count: dry_run };
    swept.uploads += await objects.abandonUploads(root, only);
  }
  if (!dry_run) await releaseGone({ store, objects }, before);
  return swept;
}

async function find(stores: Stores, folder: Folder, before: number): Promise<FoundLeftover | null> {
  const changed_at = changedAt(folder);
  if (changed_at > before) return null;
  const what = await leftoverOf(stores, folder);
  if (!what) return null;
  const bytes = folder.objects.reduce((sum, object) => sum + object.bytes, 0);
  const at = new Date(changed_at).toISOString();
  return { what, key: folder.key, objects: folder.objects.length, bytes, changed_at: at };
}

/** Unless something has happened to it since it was listed, or to the records. */
async function remove({ store, objects }: SweepOptions, folder: Folder, before: number): Promise<boolean> {
  if ((await store.readyForSweep()) !== 'ready') return false;
  const now = await sameFolder(objects, folder);
  if (!now || !isUnchanged(folder, now) || !(await find({ store, objects }, now, before))) return false;
  await objects.delete(now.objects.map(({ key }) => key));
  return true;
}
