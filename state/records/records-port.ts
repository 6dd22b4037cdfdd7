/** The ports of datasets and models. */
import type { Dataset, Model, Page } from '../../contracts/index.js';
import type { NamedPageRequest } from '../core/paging.js';

/** Version of an object from which a dataset is copied. */
export interface DatasetCopyKey {
  uri: string;
  etag: string;
  bytes: number;
  format: Dataset['format'];
}

export interface DatasetRecords {
  /**
   * Records a dataset. For a complete upload, with `upload_id`, it takes over the reserved storage and is recorded once.
   * @returns false, without a change, when a dataset was recorded for the upload before; it may have been deleted since
   * @throws `storage_quota_exceeded`
   */
  putDataset(dataset: Dataset, options?: { upload_id?: string }): Promise<boolean>;
  getDataset(datasetId: string): Promise<Dataset | null>;
  /**
   * Replaces a dataset with the result of `change`, which may be called more than once; id, project and bytes stay. Returns null when
   * unknown.
   */
  updateDataset(datasetId: string, change: (before: Dataset) => Dataset): Promise<Dataset | null>;
  /**
   * Returns the project's first dataset that was copied from this version of the object; null for none, and for an object without an
   * ETag.
   */
  findDatasetCopy(project: string, object: DatasetCopyKey): Promise<Dataset | null>;
  /** Lists the datasets of one project, newest first. */
  listDatasets(page?: NamedPageRequest): Promise<Page<Dataset>>;
  /**
   * Removes a dataset's record; the caller deletes its bytes in the object store. Returns false when it was unknown.
   * @throws `dataset_in_use` while a job that has not ended names it
   */
  deleteDataset(datasetId: string): Promise<boolean>;
}

/** Version of a folder from which a model is copied; without a version copies cannot be identified. */
export type ModelCopyKey = NonNullable<Model['source']>;

export interface ModelRecords {
  /** @throws `storage_quota_exceeded`; `model_not_found` if the base of an adapter was deleted */
  putModel(model: Model): Promise<void>;
  getModel(modelId: string): Promise<Model | null>;
  /**
   * Replaces a model with the result of `change`, which may be called more than once; id, project and bytes stay. Returns null when
   * unknown.
   */
  updateModel(modelId: string, change: (before: Model) => Model): Promise<Model | null>;
  /**
   * Returns the project's first model that was copied from this version of the folder; null for none, and for a folder without a version.
   */
  findModelCopy(project: string, folder: ModelCopyKey): Promise<Model | null>;
  /** Returns the project's first tokenizer with this content that was copied without a model; null for none. */
  findTokenizerCopy(project: string, digest: string): Promise<Model | null>;
  /** Lists the models of one project, newest first. */
  listModels(page?: NamedPageRequest): Promise<Page<Model>>;
  /**
   * Removes a model's record; the caller deletes its bytes in the object store. Returns false when it was unknown.
   * @throws `model_in_use` while a job that has not ended uses it, or adapters are over it
   */
  deleteModel(modelId: string): Promise<boolean>;
}
