import type { Dataset } from '../../contracts/index.js';
import { readPage, redisCall, type StoreContext } from './context.js';
import type { DatasetRecords } from './port.js';

export function datasetRecords(context: StoreContext): DatasetRecords {
  const { redis, prefix, commands } = context;
  const index = `${prefix}:datasets`;
  const key = (id: string) => `${prefix}:dataset:${id}`;
  const parse = (text: string | null) => (text === null ? null : (JSON.parse(text) as Dataset));

  return {
    async putDataset(dataset) {
      const write = redis.multi().set(key(dataset.id), JSON.stringify(dataset)).zadd(index, 0, dataset.id);
      await redisCall(write.exec());
    },

    async getDataset(datasetId) {
      return parse(await redisCall(redis.get(key(datasetId))));
    },

    listDatasets(page = {}) {
      const load = async (ids: string[]) => (await redisCall(redis.mget(...ids.map(key)))).map(parse);
      return readPage(context, index, page, load);
    },

    async deleteDataset(datasetId) {
      const [deleted] = await commands.run('delete_dataset', { dataset_id: datasetId });
      return deleted === '1';
    },
  };
}
