import type { Dataset } from '../../contracts/index.js';
import type { SourceObject } from '../../platform/content-sources.js';
import type { DatasetRecords } from '../../state/index.js';
import { type Copies, nameOf } from '../copies/copies.js';
import { type CopyDatasetDeps, copyDataset } from './store-dataset.js';

interface DatasetCopiesDeps extends CopyDatasetDeps {
  store: CopyDatasetDeps['store'] & Pick<DatasetRecords, 'findDatasetCopy'>;
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
    const { store, copies, closing } = this.deps;
    const { format, object } = copy;
    const { uri, etag, bytes } = object;
    const key = { uri, format, etag, bytes };
    const known = () => store.findDatasetCopy(project, key);
    const make = () => copyDataset(this.deps, { project, name: nameOf(uri), format }, object, closing);
    return copies.copyOf({ project, key, known, make }, signal);
  }
}

/** An object that must become a dataset before a job can be recorded. */
export interface DatasetCopySource {
  format: Dataset['format'];
  object: SourceObject;
}
