import type { Model } from '../../contracts/index.js';
import type { ModelRecords } from '../../state/index.js';
import { type Copies, nameOf } from '../copies/copies.js';
import type { BucketModel } from './bucket-folder.js';
import type { BucketTokenizer } from './bucket-tokenizers.js';
import { type CopyFolderDeps, copyFolder, copyTokenizer } from './store-model.js';

interface ModelCopiesDeps extends CopyFolderDeps {
  store: CopyFolderDeps['store'] & Pick<ModelRecords, 'findModelCopy' | 'findTokenizerCopy'>;
  copies: Copies;
  /** Aborts copies in progress. */
  closing: AbortSignal;
}

/** Creates models from the folders and tokenizers that jobs refer to. */
export class ModelCopies {
  constructor(private readonly deps: ModelCopiesDeps) {}

  /**
   * Returns the model of a folder, once it is complete.
   * @param signal ends the waiting, not the copy
   * @throws ZerofleetError errors of registering a model; the signal's reason
   */
  modelOf(project: string, folder: BucketModel, signal: AbortSignal): Promise<Model> {
    const { store, copies, closing } = this.deps;
    const { source } = folder;
    const head = { project, name: nameOf(source.uri), base: null };
    return copies.copyOf(
      {
        project,
        key: { model: source },
        known: () => store.findModelCopy(project, source),
        make: () => copyFolder(this.deps, head, folder, closing),
      },
      signal,
    );
  }

  /**
   * Returns the model with the content of a tokenizer, from whichever URI it was copied, once it is complete.
   * @param signal ends the waiting, not the copy
   * @throws as `copyTokenizer`; the signal's reason
   */
  tokenizerOf(project: string, tokenizer: BucketTokenizer, signal: AbortSignal): Promise<Model> {
    const { store, copies, closing } = this.deps;
    const { digest, source } = tokenizer;
    const head = { project, name: nameOf(source.uri), base: null };
    return copies.copyOf(
      {
        project,
        key: { tokenizer: digest },
        known: () => store.findTokenizerCopy(project, digest),
        make: () => copyTokenizer(this.deps, head, tokenizer, closing),
      },
      signal,
    );
  }
}
