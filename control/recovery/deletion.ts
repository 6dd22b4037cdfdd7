/**
 * Removal of a deleted job's objects. `deleted.json` is written first and removed last: while it exists,
 * `recover` skips the job and garbage collection removes its remaining objects.
 */
import {
  callNumbersPrefix,
  callResultsPrefix,
  callsPrefix,
  checkpointsPrefix,
  deletedKey,
  desiredKey,
  exportsPrefix,
  resultKey,
  rewardsPrefix,
  specKey,
} from '../../formats/checkpoint/layout.js';
import { removeFolder } from '../../formats/checkpoint/remove-folder.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { type Static, Type } from '../../platform/schema.js';
import { type DeletedJob, parser, putDocument } from '../../state/index.js';

export const DeletedDocument = Type.Object({
  format_version: Type.Literal(1),
  job_id: Type.String({ minLength: 1 }),
  /** Fate of its checkpoints and exports. With `kept` this document stays, too. */
  artifacts: Type.Union([Type.Literal('kept'), Type.Literal('removed')]),
  at: Type.String({ minLength: 1 }),
});
export type DeletedDocument = Static<typeof DeletedDocument>;

const parseDeleted = parser(DeletedDocument);

/**
 * Removes the objects of a deleted job. Idempotent after an interruption. @throws errors of the object store
 */
export async function removeJobObjects(
  objects: ObjectStore,
  { id, artifacts }: Pick<DeletedJob, 'id' | 'artifacts'>,
): Promise<void> {
  const document: DeletedDocument = {
    format_version: 1,
    job_id: id,
    artifacts: artifacts ? 'removed' : 'kept',
    at: new Date().toISOString(),
  };
  await putDocument(objects, deletedKey(id), document);
  const ofArtifacts = artifacts ? [checkpointsPrefix(id), exportsPrefix(id)] : [];
  const ofCalls = [callsPrefix(id), callResultsPrefix(id), callNumbersPrefix(id), rewardsPrefix(id)];
  for (const prefix of [...ofArtifacts, ...ofCalls]) await removeFolder(objects, prefix.replace(/\/$/, ''));
  // Without spec.json the other documents can't be read as the state of a job.
  await objects.delete([specKey(id)]);
  await objects.delete([desiredKey(id), resultKey(id)]);
  if (artifacts) await objects.delete([deletedKey(id)]);
}

/**
 * Returns null for a job that was not deleted. @throws ZerofleetError `document_invalid`; errors of the
 * object store
 */
export async function readDeleted(objects: ObjectStore, jobId: string): Promise<DeletedDocument | null> {
  const document = await getIfExists(objects, deletedKey(jobId));
  return document && parseDeleted(document);
}
