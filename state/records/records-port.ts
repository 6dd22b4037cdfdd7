/** The ports of what is not a job: datasets, models and API keys. */
import type { Dataset, Model, Page } from '../../contracts/index.js';
import type { NamedPageRequest } from '../core/paging.js';

/** An object as it was when a dataset was copied from it. */
export interface DatasetCopyKey {
  uri: string;
  etag: string;
  bytes: number;
  format: Dataset['format'];
}

export interface DatasetRecords {
  /**
   * Records it. Of a complete upload, with `upload_id`, it takes over the storage that was reserved, and is recorded once.
   * @returns false when a dataset was recorded for the upload before, which may be deleted by now: nothing is changed then
   * @throws `storage_quota_exceeded`
   */
  putDataset(dataset: Dataset, options?: { upload_id?: string }): Promise<boolean>;
  getDataset(datasetId: string): Promise<Dataset | null>;
  /** Makes of it what `change` makes of it, which may be asked more than once: id, project and bytes stay. Null when it is unknown. */
  updateDataset(datasetId: string, change: (before: Dataset) => Dataset): Promise<Dataset | null>;
  /** The first dataset of the project that was copied from the object as it is; null for none, and for an object without an ETag. */
  findDatasetCopy(project: string, object: DatasetCopyKey): Promise<Dataset | null>;
  /** Those of one project, newest first. */
  listDatasets(page?: NamedPageRequest): Promise<Page<Dataset>>;
  /**
   * False when it was unknown. The bytes in the object store are the caller's to delete.
   * @throws `dataset_in_use` while a job that has not ended names it
   */
  deleteDataset(datasetId: string): Promise<boolean>;
}

/** A folder as it was when a model was copied from it; without a version there is no saying. */
export type ModelCopyKey = NonNullable<Model['source']>;

export interface ModelRecords {
  /** @throws `storage_quota_exceeded` */
  putModel(model: Model): Promise<void>;
  getModel(modelId: string): Promise<Model | null>;
  /** Makes of it what `change` makes of it, which may be asked more than once: id, project and bytes stay. Null when it is unknown. */
  updateModel(modelId: string, change: (before: Model) => Model): Promise<Model | null>;
  /** The first model of the project that was copied from the folder as it is; null for none, and for a folder without a version. */
  findModelCopy(project: string, folder: ModelCopyKey): Promise<Model | null>;
  /** The first tokenizer of the project that was copied alone and has this content; null for none. */
  findTokenizerCopy(project: string, digest: string): Promise<Model | null>;
  /** Those of one project, newest first. */
  listModels(page?: NamedPageRequest): Promise<Page<Model>>;
  /**
   * False when it was unknown. The bytes in the object store are the caller's to delete.
   * @throws `model_in_use` while a job that has not ended begins with it
   */
  deleteModel(modelId: string): Promise<boolean>;
}
