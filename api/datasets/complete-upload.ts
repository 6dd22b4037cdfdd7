import { type Dataset, datasetDocumentKey, datasetKey, ZerofleetError } from '../../contracts/index.js';
import { newUlid } from '../../platform/random.js';
import { type DatasetRecords, putDatasetDocument } from '../../state/index.js';
import { notFound } from '../access/found.js';
import { untilAborted } from '../http/long-request.js';
import type { StoreDatasetDeps } from './store-dataset.js';
import { storeContent } from './upload.js';
import type { UploadSession } from './upload-session.js';

interface CompleteUploadDeps extends StoreDatasetDeps {
  store: Pick<DatasetRecords, 'putDataset' | 'getDataset'>;
}

interface Completion {
  session: UploadSession;
  /** Opens the content of the parts in their order; not called if the upload is complete. */
  content(): Promise<AsyncIterable<Uint8Array>>;
}

/**
 * Creates the dataset of an upload, once, and removes the parts. Parts may be replaced during completion, and
 * completions may run concurrently. So each completion stores the content that it reads under a new id, with the digest
 * of that content. The first one to write the upload's outcome wins; the others discard their copy and return the
 * winner's.
 *
 * @throws ZerofleetError `upload_not_found` when the upload is deleted meanwhile, `dataset_not_found` when the dataset
 *   was deleted since, `storage_quota_exceeded`; errors of `content` and of storeContent()
 */
export async function completeUpload(
  deps: CompleteUploadDeps,
  completion: Completion,
  signal: AbortSignal,
): Promise<Dataset> {
  const { session } = completion;
  const upload = session.announced.id;
  const outcome = (await session.outcome()) ?? (await decide(deps, completion, signal));
  const dataset = await recordOutcome(deps, outcome, upload);
  // Garbage collection removes parts that remain after a failure.
  await session.removeParts().catch((err: unknown) => deps.log.warn({ err, upload }, 'parts left'));
  return dataset;
}

async function decide(
  deps: CompleteUploadDeps,
  { session, content }: Completion,
  signal: AbortSignal,
): Promise<Dataset> {
  try {
    const body = untilAborted(await content(), signal);
    return await session.decide(await storeParts(deps, session, body));
  } catch (error) {
    // The winning completion removes the parts, possibly while they are read here.
    const outcome = await session.outcome();
    if (outcome !== null) return outcome;
    throw (await session.isGone()) ? notFound('upload', session.announced.id) : error;
  }
}

/** Stores the current content as an unrecorded dataset. Garbage collection removes it if the server dies here. */
async function storeParts(
  { objects, inspector, limits }: CompleteUploadDeps,
  session: UploadSession,
  body: AsyncIterable<Uint8Array>,
): Promise<Dataset> {
  const { project, name, format, digest } = session.announced;
  const id = `ds_${newUlid()}`;
  const limit = limits.dataset_bytes;
  const rules = { format, project, limit, expected_digest: digest };
  const content = await storeContent({ objects, inspector }, datasetKey(id), body, rules);
  const head = { id, project, name, description: '', format, source: null };
  return { ...head, ...content, created_at: new Date().toISOString() };
}

/** Records the dataset unless it is already recorded. */
async function recordOutcome(
  { store, objects }: CompleteUploadDeps,
  dataset: Dataset,
  upload: string,
): Promise<Dataset> {
  const { id } = dataset;
  const known = await store.getDataset(id);
  if (known !== null) return known;
  // The content exists from before the decision until the dataset is deleted.
  if ((await objects.head(datasetKey(id))) === null) throw deleted(id, upload);
  const document = datasetDocumentKey(id);
  await putDatasetDocument(objects, dataset);
  try {
    if (await store.putDataset(dataset, { upload_id: upload })) return dataset;
  } catch (error) {
    const refused = error instanceof ZerofleetError && error.code === 'storage_quota_exceeded';
    // `recover` would restore a document without a record. The content stays for a retry.
    if (refused && (await store.getDataset(id)) === null) await objects.delete([document]);
    throw error;
  }
  // A concurrent completion recorded it; it may have been deleted since.
  const recorded = await store.getDataset(id);
  if (recorded !== null) return recorded;
  await objects.delete([document]);
  throw deleted(id, upload);
}

function deleted(id: string, upload: string): ZerofleetError {
  return new ZerofleetError('dataset_not_found', `dataset ${id} of upload ${upload} was deleted`);
}
