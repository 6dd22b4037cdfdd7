import type { ObjectInfo, ObjectStore } from '../../platform/object-store/common/port.js';

/** Objects that are there together or not at all: the files of a dataset, a model, a save, an export, or one document. */
export interface Folder {
  /** Its key without a slash at its end; of a document that stands alone, the document's. */
  key: string;
  objects: ObjectInfo[];
}

/** The parts of the store that are ours; what else lies beside them belongs to somebody else. */
export const ROOTS = ['datasets/', 'jobs/', 'models/', 'uploads/'] as const;

/** Every folder below a root. Only one of them is held in memory at a time. */
export async function* foldersOf(objects: ObjectStore, root: string): AsyncGenerator<Folder> {
  let folder: Folder | null = null;
  // In ascending order of key, so all objects of a folder come one after the other.
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

/** The folder as it is now; null when it is gone. */
export async function sameFolder(objects: ObjectStore, { key }: Folder): Promise<Folder | null> {
  const now: Folder = { key, objects: [] };
  for await (const object of objects.list(key)) if (folderKey(object.key) === key) now.objects.push(object);
  return now.objects.length === 0 ? null : now;
}

/** `datasets/<id>`, `models/<id>`, `uploads/<project>/<id>`, `jobs/<id>/checkpoints/<save>`, `jobs/<id>/exports/<export>`; else the document itself. */
function folderKey(key: string): string {
  const parts = key.split('/');
  if (parts[0] === 'uploads') return parts.slice(0, 3).join('/');
  if (parts[0] !== 'jobs') return parts.slice(0, 2).join('/');
  return parts[2] === 'checkpoints' || parts[2] === 'exports' ? parts.slice(0, 4).join('/') : key;
}

/** When it was last written to, in ms since 1970, by the store's clock. */
export function changedAt({ objects }: Folder): number {
  return Math.max(...objects.map(({ last_modified }) => Date.parse(last_modified)));
}

/**
 * Whether nothing was written to it between two looks: the same keys with the same etags and times. A put of different bytes is always
 * noticed. On S3, a put of the same bytes goes unnoticed when it has the same time as the one before (S3 times have a resolution of a
 * millisecond to a second); the folder then has the content that was judged.
 */
export function isUnchanged(before: Folder, now: Folder): boolean {
  const text = ({ objects }: Folder) =>
    objects.map(({ key, etag, last_modified }) => `${key} ${etag} ${last_modified}`).join('\n');
  return text(before) === text(now);
}
