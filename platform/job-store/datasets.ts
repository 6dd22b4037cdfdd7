import type { Dataset } from '../../contracts/index.js';
import type { StoreContext } from './context.js';
import { documents } from './documents.js';
import type { DatasetRecords } from './port.js';

export function datasetRecords(context: StoreContext): DatasetRecords {
  const { put, get, list } = documents<Dataset>(context, 'dataset');
  return {
    putDataset: put,
    getDataset: get,
    listDatasets: list,

    async deleteDataset(datasetId) {
      const [deleted] = await context.commands.run('delete_dataset', { dataset_id: datasetId });
      return deleted === '1';
    },
  };
}
