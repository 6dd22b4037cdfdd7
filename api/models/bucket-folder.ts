import { createHash } from 'node:crypto';
import { type Model, ZerofleetError } from '../../contracts/index.js';
import { type DatasetSources, folderUri } from '../../platform/dataset-sources.js';
import { CONFIG_FILE, TOKENIZER_FILE } from '../../platform/models/documents.js';
import type { SourceObject } from '../../platform/object-store/s3/source.js';
import { missing } from '../contents/contents.js';
import { requireDocumentSize } from '../contents/documents.js';
import { unreadIn } from '../contents/tokenizer.js';
import { untilAborted } from '../http/long-request.js';
import type { Inspector } from '../inspection/inspector.js';
import { type FolderFile, kindOf, MAX_IGNORED } from './folder.js';
import { wholeOf } from './whole.js';

interface Found {
  name: string;
  kind: 'document' | 'weights';
  object: SourceObject;
}

/**
 * A model's folder as it was when it was looked at: each file is read only if it is still the one that was found, so that a model is
 * never made of two.
 */
export class BucketModel {
  private constructor(
    /** Without a version where the server doesn't say when a file has changed. */
    readonly source: NonNullable<Model['source']>,
    private readonly found: readonly Found[],
    readonly ignored: string[],
  ) {}

  /**
   * Only looks.
   * @param uri with or without a slash at its end
   * @throws ZerofleetError `model_file_missing`, and those of the sources
   */
  static async find(text: string, sources: DatasetSources): Promise<BucketModel> {
    const uri = folderUri(text);
    const found: Found[] = [];
    const ignored: string[] = [];
    for (const name of await sources.list(text)) {
      const kind = kindOf(name);
      if (kind !== null) found.push({ name, kind, object: await sources.find(`${uri}/${name}`) });
      else if (ignored.length < MAX_IGNORED) ignored.push(name);
    }
    // The documents first: a shard is checked against them while it is read.
    found.sort((a, b) => (a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind === 'document' ? -1 : 1));
    if (found.length > 0) return new BucketModel({ uri, ...versionOf(found) }, found, ignored);
    throw new ZerofleetError(
      'model_file_missing',
      'the folder has neither config.json nor weights; its URI must be that of the files of a Hugging Face model',
    );
  }

  get bytes(): number {
    return this.found.reduce((sum, { object }) => sum + object.bytes, 0);
  }

  /** @throws (while it is read) as `SourceObject.read` */
  async *files(signal: AbortSignal): AsyncGenerator<FolderFile> {
    for (const { name, kind, object } of this.found) {
      yield { name, kind, bytes: object.bytes, content: untilAborted(object.read(), signal) };
    }
  }

  /**
   * As much of the model as its `config.json` and the names of the files tell; nothing else is read. It has no tokens to check, and its
   * URI instead of an id.
   * @throws ZerofleetError `model_file_missing`, `model_too_large`, `model_config_invalid`, `content_too_complex`; those of reading the bucket
   */
  async preview(project: string, inspector: Inspector): Promise<Model> {
    if (!this.found.some(({ kind }) => kind === 'weights'))
      throw missing('model.safetensors, and no shard of one');
    const bytes = await this.config();
    const described = await inspector.run('readConfig', { bytes }, { owner: project });
    return {
      id: this.source.uri,
      project,
      name: '',
      description: '',
      ...described,
      dtypes: [],
      has_tokenizer: this.found.some(({ name }) => name === TOKENIZER_FILE),
      ...unreadIn(this.found.map(({ name }) => name)),
      tokenizer: null,
      source: this.source,
      bytes: this.bytes,
      digest: '',
      files: [],
      ignored_files: this.ignored,
      created_at: '',
    };
  }

  private async config(): Promise<Uint8Array<ArrayBuffer>> {
    const file = this.found.find(({ name }) => name === CONFIG_FILE);
    if (file === undefined) throw missing(CONFIG_FILE);
    const { object } = file;
    requireDocumentSize(CONFIG_FILE, object.bytes);
    return wholeOf(object.read(), object.bytes);
  }
}

/** Which version of the files it is; none where the server doesn't say when one has changed. */
export function versionOf(found: readonly Pick<Found, 'name' | 'object'>[]): { version?: string } {
  if (found.some(({ object }) => object.etag === '')) return {};
  const hash = createHash('sha256');
  for (const { name, object } of found) hash.update(`${name} ${object.bytes} ${object.etag}\n`);
  return { version: `sha256:${hash.digest('hex')}` };
}
