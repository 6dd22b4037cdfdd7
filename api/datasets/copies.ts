import type { Dataset } from '../../contracts/index.js';
import type { SourceObject } from '../../platform/object-store/s3/source.js';
import type { DatasetRecords, Projects } from '../../state/index.js';
import { requireStorage } from '../access/storage-quota.js';
import { type Copies, nameOf } from '../copies/copies.js';
import { untilAborted } from '../http/long-request.js';
import { type StoreDatasetDeps, storeDataset } from './store-dataset.js';
import { tooLarge } from './upload.js';

export interface DatasetCopiesDeps extends Omit<StoreDatasetDeps, 'store'> {
  store: Pick<DatasetRecords, 'putDataset' | 'findDatasetCopy'> & Pick<Projects, 'getQuota' | 'getUse'>;
  copies: Copies;
  /** Aborts copies in progress. */
  closing: AbortSignal;
}

/** Creates datasets from the objects that jobs refer to. */
export class DatasetCopies {
  constructor(private readonly deps: DatasetCopiesDeps) {}

  /**
   * Returns the dataset of an object, once it is complete.
   * @param signal ends the waiting, not the copy
   * @throws ZerofleetError errors of registering a dataset; the signal's reason
   */
  datasetOf(project: string, copy: DatasetCopySource, signal: AbortSignal): Promise<Dataset> {
    const { store, copies } = this.deps;
    const object = { uri: copy.uri, format: copy.format, etag: copy.object.etag, bytes: copy.object.bytes };
    const known = () => store.findDatasetCopy(project, object);
    return copies.copyOf({ project, key: object, known, make: () => this.store(project, copy) }, signal);
  }

  private async store(project: string, { uri, format, object }: DatasetCopySource): Promise<Dataset> {
    const { store, closing, limits } = this.deps;
    if (object.bytes > limits.dataset_bytes) throw tooLarge(limits.dataset_bytes);
    await requireStorage(store, project, String(object.bytes));
    const head = { project, name: nameOf(uri), format, source: { uri, etag: object.etag } };
    return storeDataset(this.deps, head, untilAborted(object.read(), closing));
  }
}

/** An object that must become a dataset before a job can be recorded. */
export interface DatasetCopySource {
  uri: string;
  format: Dataset['format'];
  object: SourceObject;
}
