import { type Model, withoutCommit } from '../../contracts/index.js';
import type { StoreContext } from '../core/context.js';
import { documents } from './documents.js';

/** Version of a folder from which a model is copied; without a version copies cannot be identified. */
export type ModelCopyKey = NonNullable<Model['source']>;

export type ModelRecords = ReturnType<typeof modelRecords>;

export function modelRecords(context: StoreContext) {
  const { put, get, update, list, remove, copied } = documents<Model>(context, 'model', copyOf);
  return {
    /** @throws `storage_quota_exceeded`; `model_not_found` if the base of an adapter was deleted */
    async putModel(model: Model): Promise<void> {
      await put(model);
    },
    getModel: get,
    /**
     * Replaces a model with the result of `change`, which may be called more than once; id, project and bytes
     * stay. Returns null when unknown.
     */
    updateModel: update,
    /** Lists the models of one project, newest first. */
    listModels: list,
    /**
     * Removes a model's record; the caller deletes its bytes in the object store. Returns false when it was
     * unknown.
     * @throws `model_in_use` while a job that has not ended uses it, or adapters are over it
     */
    deleteModel: remove,
    /**
     * Returns the project's first model that was copied from this version of the folder; null for none, and
     * for a folder without a version.
     */
    findModelCopy: (project: string, folder: ModelCopyKey): Promise<Model | null> =>
      copied(project, fieldOf(folder)),
    /**
     * Returns the project's first tokenizer with this content that was copied without a model; null for none.
     */
    findTokenizerCopy: (project: string, digest: string): Promise<Model | null> =>
      copied(project, tokenizerField(digest)),
  };
}

function copyOf({ model_type, digest, source }: Model): string | undefined {
  // A tokenizer without a model is identified by its content: equal ones exist in many buckets.
  return model_type === null ? tokenizerField(digest) : source && fieldOf(source);
}

function tokenizerField(digest: string): string {
  return `tokenizer ${digest}`;
}

/**
 * Without a version a change of the folder cannot be detected. The version of a folder on the Hub contains the hashes
 * of its files, so commits that change none of them share one copy.
 */
function fieldOf({ uri, version }: ModelCopyKey): string | undefined {
  return version === undefined ? undefined : `model ${version} ${withoutCommit(uri)}`;
}
