import type { Dataset } from '../../contracts/index.js';
import type { StoreContext } from './context.js';
import { documents } from './documents.js';
import type { DatasetRecords } from './port.js';

/** At first there were texts only, all of them uploaded. */
const TEXT = { source: null, num_documents: 1, num_chats: 0, max_token: null } satisfies Partial<Dataset>;

export function datasetRecords(context: StoreContext): DatasetRecords {
  const { put, get, list } = documents<Dataset>(context, 'dataset', TEXT);
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
