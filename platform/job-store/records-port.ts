/** The ports of what is not a job: datasets, models and API keys. */
import type { Dataset, Model, Page, Scope } from '../../contracts/index.js';
import type { ProjectPageRequest } from './port.js';

export interface DatasetRecords {
  putDataset(dataset: Dataset): Promise<void>;
  getDataset(datasetId: string): Promise<Dataset | null>;
  /** Those of one project, newest first. */
  listDatasets(page?: ProjectPageRequest): Promise<Page<Dataset>>;
  /**
   * False when it was unknown. The bytes in the object store are the caller's to delete.
   * @throws `dataset_in_use` while a job that has not ended names it
   */
  deleteDataset(datasetId: string): Promise<boolean>;
}

export interface ModelRecords {
  putModel(model: Model): Promise<void>;
  getModel(modelId: string): Promise<Model | null>;
  /** Those of one project, newest first. */
  listModels(page?: ProjectPageRequest): Promise<Page<Model>>;
  /**
   * False when it was unknown. The bytes in the object store are the caller's to delete.
   * @throws `model_in_use` while a job that has not ended begins with it
   */
  deleteModel(modelId: string): Promise<boolean>;
}

export interface ApiKey {
  /** `key_<ulid>`; not secret. */
  id: string;
  name: string;
  scopes: Scope[];
  /** What the key can see. */
  project: string;
  created_at: string;
}

export interface ApiKeys {
  /**
   * Accepts `secret` from now on; only its SHA-256 is stored. The same secret again replaces name, scopes and
   * project ('default' when it is absent).
   */
  putApiKey(secret: string, key: { name: string; scopes: Scope[]; project?: string }): Promise<ApiKey>;
  /** Null when the key is unknown or revoked. */
  findApiKey(secret: string): Promise<ApiKey | null>;
  listApiKeys(): Promise<ApiKey[]>;
  /** False when it was unknown. */
  revokeApiKey(keyId: string): Promise<boolean>;
}
