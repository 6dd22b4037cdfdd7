import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { type Dataset, datasetDocumentKey, datasetKey } from '../../contracts/index.js';
import type { SourceObject } from '../../platform/content-sources.js';
import type { Logger } from '../../platform/logging/logging.js';
import { newUlid } from '../../platform/random.js';
import { type DatasetRecords, type Projects, putDatasetDocument } from '../../state/index.js';
import { notFound } from '../access/found.js';
import type { ProjectRecords } from '../access/project-records.js';
import { requireStorage } from '../access/storage-quota.js';
import { mayBeRecorded } from '../copies/may-be-recorded.js';
import { thenSilent, untilAborted } from '../http/long-request.js';
import { uploadBody } from '../http/upload-body.js';
import type { ApiLimits } from '../limits.js';
import { type StoreContentDeps, storeContent, tooLarge } from './upload.js';

export interface StoreDatasetDeps extends StoreContentDeps {
  store: Pick<DatasetRecords, 'putDataset'>;
  limits: Pick<ApiLimits, 'dataset_bytes'>;
  log: Pick<Logger, 'warn'>;
}

export interface CopyDatasetDeps extends StoreDatasetDeps {
  store: Pick<DatasetRecords, 'putDataset'> & Pick<Projects, 'getQuota' | 'getUse'>;
}

/** Properties of a dataset that are known before its content is read. */
type DatasetHead = Pick<Dataset, 'project' | 'name' | 'format' | 'source'>;

/**
 * Stores the content, then the record: the dataset exists only when both are durable.
 * @throws errors of storeContent() and of the job store
 */
async function storeDataset(
  { store, objects, inspector, limits, log }: StoreDatasetDeps,
  head: DatasetHead,
  body: AsyncIterable<Uint8Array>,
): Promise<Dataset> {
  const id = `ds_${newUlid()}`;
  const key = datasetKey(id);
  const { format, project } = head;
  const rules = { format, project, limit: limits.dataset_bytes };
  const content = await storeContent({ objects, inspector }, key, body, rules);
  const dataset: Dataset = { id, ...head, description: '', ...content, created_at: new Date().toISOString() };
  try {
    await putDatasetDocument(objects, dataset);
    await store.putDataset(dataset);
  } catch (error) {
    // Without its document, a dataset without a record is garbage and a dataset with a record is complete.
    const unneeded = mayBeRecorded(error) ? [datasetDocumentKey(id)] : [datasetDocumentKey(id), key];
    await objects
      .delete(unneeded)
      .catch((cause: unknown) => log.warn({ err: cause, key }, 'orphaned dataset'));
    throw error;
  }
  return dataset;
}

/**
 * Copies an object: later changes of the object affect no job.
 * @throws ZerofleetError `dataset_too_large`, `storage_quota_exceeded`, errors of storeDataset() and of reading the
 *   bucket
 */
export async function copyDataset(
  deps: CopyDatasetDeps,
  head: Omit<DatasetHead, 'source'>,
  object: SourceObject,
  signal: AbortSignal,
): Promise<Dataset> {
  const { store, limits } = deps;
  if (object.bytes > limits.dataset_bytes) throw tooLarge(limits.dataset_bytes);
  await requireStorage(store, head.project, String(object.bytes));
  const source = { uri: object.uri, etag: object.etag, bytes: object.bytes };
  return storeDataset(deps, { ...head, source }, untilAborted(object.read(signal), signal));
}

/**
 * Stores content while it arrives.
 * @param bytes announced size of the content as text; absent if unknown
 * @throws ZerofleetError `dataset_too_large`, `storage_quota_exceeded`, errors of storeDataset()
 */
export async function receiveDataset(
  request: FastifyRequest,
  head: Pick<DatasetHead, 'name' | 'format'>,
  content: Readable,
  bytes?: string,
): Promise<Dataset> {
  const { server, records, log } = request;
  const { store, limits } = server.services;
  const { project } = records;
  if (Number(bytes ?? 0) > limits.dataset_bytes) throw tooLarge(limits.dataset_bytes);
  await requireStorage(store, project, bytes);
  const pieces = thenSilent(uploadBody(content), request);
  return storeDataset({ ...server.services, log }, { project, ...head, source: null }, pieces);
}

/** @throws ZerofleetError `dataset_not_found`, `dataset_in_use` */
export async function removeDataset(
  objects: Pick<StoreContentDeps['objects'], 'delete'>,
  records: Pick<ProjectRecords, 'deleteDataset'>,
  id: string,
): Promise<void> {
  // The record first: a crash in between leaves unreferenced bytes instead of a record without bytes.
  if (!(await records.deleteDataset(id))) throw notFound('dataset', id);
  await objects.delete([datasetDocumentKey(id), datasetKey(id)]);
}
