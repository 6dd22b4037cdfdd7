import { ulid } from 'ulid';
import { type Dataset, datasetDocumentKey, datasetKey } from '../../contracts/index.js';
import type { DatasetRecords } from '../../platform/job-store/port.js';
import type { Logger } from '../../platform/logging.js';
import type { ObjectStore } from '../../platform/object-store/port.js';
import { putDatasetDocument } from '../../platform/recovery/documents.js';
import type { ApiLimits } from '../services.js';
import { storeContent } from './upload.js';

export interface StoreDatasetDeps {
  store: Pick<DatasetRecords, 'putDataset'>;
  objects: ObjectStore;
  limits: Pick<ApiLimits, 'dataset_bytes'>;
  log: Pick<Logger, 'warn'>;
}

/** What is known of a dataset before its content was read. */
export type DatasetHead = Pick<Dataset, 'project' | 'name' | 'format' | 'source'> & {
  /** Of a dataset that is perhaps stored twice; without it, a new one. */
  id?: string;
};

/**
 * Stores the content, then the record: the dataset exists only when both are durable.
 * @throws what storeContent() throws, and the job store
 */
export async function storeDataset(
  { store, objects, limits, log }: StoreDatasetDeps,
  head: DatasetHead,
  body: AsyncIterable<Uint8Array>,
  expected_digest: string | null = null,
): Promise<Dataset> {
  const id = head.id ?? `ds_${ulid()}`;
  const key = datasetKey(id);
  const content = await storeContent(objects, key, body, {
    format: head.format,
    limit: limits.dataset_bytes,
    expected_digest,
  });
  const dataset: Dataset = { ...head, id, ...content, created_at: new Date().toISOString() };
  try {
    await putDatasetDocument(objects, dataset);
    await store.putDataset(dataset);
  } catch (error) {
    // Under a given id it may be somebody else's by now; the sweep knows.
    if (head.id !== undefined) throw error;
    await objects
      .delete([datasetDocumentKey(id), key])
      .catch((cause: unknown) => log.warn({ err: cause, key }, 'orphaned dataset'));
    throw error;
  }
  return dataset;
}
