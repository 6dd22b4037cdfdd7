import type { ObjectInfo, ObjectStore } from '../../platform/object-store/common/port.js';

/**
 * Objects that exist together or not at all: the files of a dataset, a model, a save or an export, or one
 * document.
 */
export interface Folder {
  /** Key without a trailing slash; for a single document, the key of the document. */
  key: string;
  objects: ObjectInfo[];
}

/** Prefixes of the bucket that belong to zerofleet. Other prefixes belong to other applications. */
export const ROOTS = ['datasets/', 'jobs/', 'models/', 'uploads/'] as const;

/** Yields every folder below a root. Only one is held in memory at a time. */
export async function* foldersOf(objects: ObjectStore, root: string): AsyncGenerator<Folder> {
  let folder: Folder | null = null;
  // Keys are listed in ascending order, so all objects of a folder are adjacent.
  for await (const object of objects.list(root)) {
    const key = folderKey(object.key);
    if (folder && folder.key !== key) {
      yield folder;
      folder = null;
    }
    folder ??= { key, objects: [] };
    folder.objects.push(object);
  }
  if (folder) yield folder;
}

/** Reads the folder again; null if it is gone. */
export async function sameFolder(objects: ObjectStore, { key }: Folder): Promise<Folder | null> {
  const now: Folder = { key, objects: [] };
  for await (const object of objects.list(key)) if (folderKey(object.key) === key) now.objects.push(object);
  return now.objects.length === 0 ? null : now;
}

/**
 * `datasets/<id>`, `models/<id>`, `uploads/<project>/<id>`, `jobs/<id>/checkpoints/<save>`,
 * `jobs/<id>/exports/<export>`; else the document itself.
 */
function folderKey(key: string): string {
  const parts = key.split('/');
  if (parts[0] === 'uploads') return parts.slice(0, 3).join('/');
  if (parts[0] !== 'jobs') return parts.slice(0, 2).join('/');
  return parts[2] === 'checkpoints' || parts[2] === 'exports' ? parts.slice(0, 4).join('/') : key;
}

/** Returns the time of the last write in ms since 1970, by the store's clock. */
export function changedAt({ objects }: Folder): number {
  return Math.max(...objects.map(({ last_modified }) => Date.parse(last_modified)));
}

/**
 * Returns whether the folder was not written between two listings: the same keys with the same etags and
 * times. A put of different bytes is always noticed. On S3 a put of the same bytes goes unnoticed if it has
 * the same time as the put before. The folder then has the content that was judged. Times on S3 have a
 * resolution of a millisecond to a second.
 */
export function isUnchanged(before: Folder, now: Folder): boolean {
  const text = ({ objects }: Folder) =>
    objects.map(({ key, etag, last_modified }) => `${key} ${etag} ${last_modified}`).join('\n');
  return text(before) === text(now);
}
