import type { Model } from '../../contracts/index.js';
import type { StoreContext } from './context.js';
import { documents } from './documents.js';
import type { ModelRecords } from './port.js';

export function modelRecords(context: StoreContext): ModelRecords {
  const { put, get, list } = documents<Model>(context, 'model', { tokenizer: null });
  return {
    async putModel(model) {
      await put(model);
    },
    getModel: get,
    listModels: list,

    async deleteModel(modelId) {
      const [deleted] = await context.commands.run('delete_model', { model_id: modelId });
      return deleted === '1';
    },
  };
}
