import type { Dataset } from '../../contracts/index.js';
import { indexKey, redisCall, type StoreContext } from '../core/context.js';
import { documents } from './documents.js';
import type { DatasetCopyKey, DatasetRecords } from './records-port.js';

export function datasetRecords(context: StoreContext): DatasetRecords {
  const { put, get, update, list } = documents<Dataset>(context, 'dataset');
  return {
    putDataset: (dataset, { upload_id } = {}) => put(dataset, { copy_of: copyOf(dataset), upload_id }),
    getDataset: get,
    updateDataset: update,
    listDatasets: list,

    async findDatasetCopy(project, object) {
      const field = fieldOf(object);
      if (field === undefined) return null;
      const id = await redisCall(context.redis.hget(indexKey(context, project, 'copies'), field));
      return id === null ? null : get(id);
    },

    async deleteDataset(datasetId) {
      const dataset = await get(datasetId);
      const copy_of = dataset === null ? undefined : copyOf(dataset);
      const [deleted] = await context.commands.run('delete_dataset', { dataset_id: datasetId, copy_of });
      return deleted === '1';
    },
  };
}

function copyOf({ source, format, bytes }: Dataset): string | undefined {
  return source ? fieldOf({ ...source, format, bytes }) : undefined;
}

/** Without an ETag a change of the object cannot be detected. */
function fieldOf({ uri, etag, bytes, format }: DatasetCopyKey): string | undefined {
  return etag === '' ? undefined : `${format} ${bytes} ${etag} ${uri}`;
}
