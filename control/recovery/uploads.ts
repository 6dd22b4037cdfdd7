/** What the job store, the sweep and `recover` have to know of an upload that is not complete: where it lies, and its size. */

import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { Type } from '../../platform/schema.js';
import type { UploadSpace } from '../../state/index.js';
import { parser } from './documents.js';

const parseSize = parser(
  Type.Object({ id: Type.String(), project: Type.String(), bytes: Type.Integer({ minimum: 1 }) }),
);

export function uploadKey(project: string, uploadId: string): string {
  return `uploads/${project}/${uploadId}`;
}

/** What was announced; while it is there, the upload is. */
export function uploadDocumentKey(project: string, uploadId: string): string {
  return `${uploadKey(project, uploadId)}/upload.json`;
}

/** The dataset that became of it. */
export function uploadOutcomeKey(project: string, uploadId: string): string {
  return `${uploadKey(project, uploadId)}/dataset.json`;
}

/**
 * Counts an upload again after the records were lost, unless it is complete.
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
