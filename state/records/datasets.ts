import type { Dataset } from '../../contracts/index.js';
import type { StoreContext } from '../core/context.js';
import { documents } from './documents.js';
import type { DatasetCopyKey, DatasetRecords } from './records-port.js';

export function datasetRecords(context: StoreContext): DatasetRecords {
  const { put, get, update, list, remove, copied } = documents<Dataset>(context, 'dataset', copyOf);
  return {
    putDataset: put,
    getDataset: get,
    updateDataset: update,
    listDatasets: list,
    deleteDataset: remove,
    findDatasetCopy: (project, object) => copied(project, fieldOf(object)),
  };
}

function copyOf({ source, format, bytes }: Dataset): string | undefined {
  return source ? fieldOf({ ...source, format, bytes }) : undefined;
}

/** Without an ETag a change of the object cannot be detected. */
function fieldOf({ uri, etag, bytes, format }: DatasetCopyKey): string | undefined {
  return etag === '' ? undefined : `${format} ${bytes} ${etag} ${uri}`;
}
