import type { Model } from '../../contracts/index.js';
import { indexKey, redisCall, type StoreContext } from '../core/context.js';
import { documents } from './documents.js';
import type { ModelCopyKey, ModelRecords } from './records-port.js';

export function modelRecords(context: StoreContext): ModelRecords {
  const { put, get, update, list } = documents<Model>(context, 'model');
  const copied = async (project: string, field: string) => {
    const id = await redisCall(context.redis.hget(indexKey(context, project, 'copies'), field));
    return id === null ? null : get(id);
  };
  return {
    async putModel(model) {
      await put(model, { copy_of: copyOf(model) });
    },
    getModel: get,
    updateModel: update,
    listModels: list,

    async findModelCopy(project, folder) {
      const field = fieldOf(folder);
      return field === undefined ? null : copied(project, field);
    },

    findTokenizerCopy: (project, digest) => copied(project, tokenizerField(digest)),

    async deleteModel(modelId) {
      const model = await get(modelId);
      const copy_of = model === null ? undefined : copyOf(model);
      const [deleted] = await context.commands.run('delete_model', { model_id: modelId, copy_of });
      return deleted === '1';
    },
  };
}

function copyOf({ model_type, digest, source }: Model): string | undefined {
  // A tokenizer without a model is identified by its content: equal ones exist in many buckets.
  return model_type === null ? tokenizerField(digest) : source && fieldOf(source);
}

function tokenizerField(digest: string): string {
  return `tokenizer ${digest}`;
}

/** Without a version a change of the folder cannot be detected. */
function fieldOf({ uri, version }: ModelCopyKey): string | undefined {
  return version === undefined ? undefined : `model ${version} ${uri}`;
}
