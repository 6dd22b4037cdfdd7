import { decodeTime } from 'ulid';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { Projects, UploadSpace } from '../../state/index.js';
import { uploadDocumentKey } from '../recovery/uploads.js';

export interface ReservationStores {
  store: Pick<UploadSpace, 'reservedUploads' | 'releaseUpload'> & Pick<Projects, 'listProjects'>;
  objects: Pick<ObjectStore, 'head'>;
}

/**
 * Releases the storage of uploads that are gone: removed ones, and ones whose server died between the removal
 * and the release, or before the first write.
 * @param before ms since 1970; younger uploads may be about to be written
 */
export async function releaseGone({ store, objects }: ReservationStores, before: number): Promise<void> {
  for (const project of await store.listProjects()) {
    for (const id of await store.reservedUploads(project)) {
      if (decodeTime(id.slice('upl_'.length)) > before) continue;
      if ((await objects.head(uploadDocumentKey(project, id))) === null)
        await store.releaseUpload(project, id);
    }
  }
}
