import { type Dataset, datasetDocumentKey, datasetKey, ZerofleetError } from '../../contracts/index.js';
import { putDatasetDocument } from '../../control/recovery/documents.js';
import { newUlid } from '../../platform/random.js';
import type { DatasetRecords } from '../../state/index.js';
import { untilAborted } from '../http/long-request.js';
import type { StoreDatasetDeps } from './store-dataset.js';
import { storeContent } from './upload.js';
import { notFound, type UploadSession } from './upload-session.js';

export interface CompleteUploadDeps extends StoreDatasetDeps {
  store: Pick<DatasetRecords, 'putDataset' | 'getDataset'>;
}

/**
 * Makes the dataset of an upload, once. Parts may be replaced while somebody completes it, and somebody else may complete it, too:
 * each completion stores what it reads under an id of its own, with the digest of just that. The first one that writes the upload's
 * outcome decides; the others throw theirs away and answer with it.
 *
 * @throws ZerofleetError `upload_incomplete`, `upload_not_found` when the upload is deleted meanwhile, `dataset_not_found` when the
 *   dataset was deleted since, `storage_quota_exceeded`; what storeContent() throws
 */
export async function completeUpload(
  deps: CompleteUploadDeps,
  session: UploadSession,
  signal: AbortSignal,
): Promise<Dataset> {
  const outcome = (await session.outcome()) ?? (await decide(deps, session, signal));
  return recordOutcome(deps, outcome, session.announced.id);
}

async function decide(
  deps: CompleteUploadDeps,
  session: UploadSession,
  signal: AbortSignal,
): Promise<Dataset> {
  try {
    return await session.decide(await storeParts(deps, session, signal));
  } catch (error) {
    // Whoever decided removes the parts, also while they are read here.
    const outcome = await session.outcome();
    if (outcome !== null) return outcome;
    throw (await session.isGone()) ? notFound(session.announced.id) : error;
  }
}

/** Stores the content as it is now, as a dataset that nobody knows of. The sweep finds it when this is where the server dies. */
async function storeParts(
  { objects, inspector, limits }: CompleteUploadDeps,
  session: UploadSession,
  signal: AbortSignal,
): Promise<Dataset> {
  const { project, name, format, digest } = session.announced;
  const body = untilAborted(await session.content(), signal);
  const id = `ds_${newUlid()}`;
  const limit = limits.dataset_bytes;
  const rules = { format, project, limit, expected_digest: digest };
  const content = await storeContent({ objects, inspector }, datasetKey(id), body, rules);
  const head = { id, project, name, description: '', format, source: null };
  return { ...head, ...content, created_at: new Date().toISOString() };
}

/** Records the dataset, unless that was done before. */
async function recordOutcome(
  { store, objects }: CompleteUploadDeps,
  dataset: Dataset,
  upload: string,
): Promise<Dataset> {
  const { id } = dataset;
  const known = await store.getDataset(id);
  if (known !== null) return known;
  // Its content is there from before the decision until somebody deletes the dataset.
  if ((await objects.head(datasetKey(id))) === null) throw deleted(id, upload);
  const document = datasetDocumentKey(id);
  await putDatasetDocument(objects, dataset);
  try {
    if (await store.putDataset(dataset, { upload_id: upload })) return dataset;
  } catch (error) {
    const refused = error instanceof ZerofleetError && error.code === 'storage_quota_exceeded';
    // A document without a record would be brought back by `recover`. The content stays for another try.
    if (refused && (await store.getDataset(id)) === null) await objects.delete([document]);
    throw error;
  }
  // Recorded by somebody else at the same time; it may have been deleted at once.
  const recorded = await store.getDataset(id);
  if (recorded !== null) return recorded;
  await objects.delete([document]);
  throw deleted(id, upload);
}

function deleted(id: string, upload: string): ZerofleetError {
  return new ZerofleetError('dataset_not_found', `dataset ${id}, which upload ${upload} became, was deleted`);
}
