import { type Dataset, withoutCommit } from '../../contracts/index.js';
import type { StoreContext } from '../core/context.js';
import { documents } from './documents.js';

/** Version of an object from which a dataset is copied. */
export interface DatasetCopyKey {
  uri: string;
  etag: string;
  bytes: number;
  format: Dataset['format'];
}

export type DatasetRecords = ReturnType<typeof datasetRecords>;

export function datasetRecords(context: StoreContext) {
  const { put, get, update, list, remove, copied } = documents<Dataset>(context, 'dataset', copyOf);
  return {
    /**
     * Records a dataset. For a complete upload, with `upload_id`, it takes over the reserved storage and is
     * recorded once.
     * @returns false, without a change, when a dataset was recorded for the upload before; it may have been
     *   deleted since
     * @throws `storage_quota_exceeded`
     */
    putDataset: put,
    getDataset: get,
    /**
     * Replaces a dataset with the result of `change`, which may be called more than once; id, project and
     * bytes stay. Returns null when unknown.
     */
    updateDataset: update,
    /** Lists the datasets of one project, newest first. */
    listDatasets: list,
    /**
     * Removes a dataset's record; the caller deletes its bytes in the object store. Returns false when it was
     * unknown.
     * @throws `dataset_in_use` while a job that has not ended names it
     */
    deleteDataset: remove,
    /**
     * Returns the project's first dataset that was copied from this version of the object; null for none, and
     * for an object without an ETag.
     */
    findDatasetCopy: (project: string, object: DatasetCopyKey): Promise<Dataset | null> =>
      copied(project, fieldOf(object)),
  };
}

function copyOf({ source, format }: Dataset): string | undefined {
  return source ? fieldOf({ ...source, format }) : undefined;
}

/** Without an ETag a change of the object cannot be detected. On the Hub it is the hash of the content. */
function fieldOf({ uri, etag, bytes, format }: DatasetCopyKey): string | undefined {
  return etag === '' ? undefined : `${format} ${bytes} ${etag} ${withoutCommit(uri)}`;
}
