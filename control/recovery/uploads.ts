/** Keys and size of an incomplete upload, for the job store, garbage collection and `recover`. */

import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { Type } from '../../platform/schema.js';
import { parser, type UploadSpace } from '../../state/index.js';

const parseSize = parser(
  Type.Object({ id: Type.String(), project: Type.String(), bytes: Type.Integer({ minimum: 1 }) }),
);

export function uploadKey(project: string, uploadId: string): string {
  return `uploads/${project}/${uploadId}`;
}

/** Key of the upload's announcement. The upload exists as long as this document does. */
export function uploadDocumentKey(project: string, uploadId: string): string {
  return `${uploadKey(project, uploadId)}/upload.json`;
}

/** Key of the resulting dataset's document. */
export function uploadOutcomeKey(project: string, uploadId: string): string {
  return `${uploadKey(project, uploadId)}/dataset.json`;
}

/**
 * Reserves the storage of an upload again after the records were lost, unless the upload is complete.
 * @param document its `upload.json`
 */
export async function restoreUpload(
  { store, objects }: { store: Pick<UploadSpace, 'reserveUpload'>; objects: ObjectStore },
  document: Uint8Array,
): Promise<void> {
  const { id, project, bytes } = parseSize(document);
  if ((await objects.head(uploadOutcomeKey(project, id))) === null)
    await store.reserveUpload(project, id, bytes);
}
