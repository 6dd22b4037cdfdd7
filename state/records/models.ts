import type { Model } from '../../contracts/index.js';
import type { StoreContext } from '../core/context.js';
import { documents } from './documents.js';
import type { ModelCopyKey, ModelRecords } from './records-port.js';

export function modelRecords(context: StoreContext): ModelRecords {
  const { put, get, update, list, remove, copied } = documents<Model>(context, 'model', copyOf);
  return {
    async putModel(model) {
      await put(model);
    },
    getModel: get,
    updateModel: update,
    listModels: list,
    deleteModel: remove,
    findModelCopy: (project, folder) => copied(project, fieldOf(folder)),
    findTokenizerCopy: (project, digest) => copied(project, tokenizerField(digest)),
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
