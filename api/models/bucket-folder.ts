import { createHash } from 'node:crypto';
import { type Model, ZerofleetError } from '../../contracts/index.js';
import { CONFIG_FILE, tokenizerFileIn } from '../../formats/models/documents.js';
import type { ContentSource, SourceObject } from '../../platform/content-sources.js';
import { missing } from '../contents/contents.js';
import { requireDocumentSize } from '../contents/documents.js';
import { unreadIn } from '../contents/tokenizer.js';
import { untilAborted } from '../http/long-request.js';
import type { Inspector } from '../inspection/inspector.js';
import { collectBytes } from './collect-bytes.js';
import { type FolderFile, type FolderNames, kindOf, MAX_IGNORED, MODEL_NAMES } from './folder.js';

interface Found {
  name: string;
  kind: 'document' | 'weights';
  object: SourceObject;
}

interface FindOptions {
  sources: ContentSource;
  /** Project of the request. */
  project: string;
  /** Names to copy; by default the files of a model. */
  names?: FolderNames;
}

/**
 * Snapshot of a model's folder: each file is read only if it is unchanged since the listing, so a copy never mixes two
 * versions.
 */
export class BucketModel {
  private constructor(
    /** Without a version if the server reports no changes of files. */
    readonly source: NonNullable<Model['source']>,
    private readonly found: readonly Found[],
    readonly ignored: string[],
  ) {}

  /**
   * Lists a folder without reading files.
   * @param text URI with or without a trailing slash
   * @throws ZerofleetError `model_file_missing`, and errors of the sources
   */
  static async find(
    text: string,
    { sources, project, names = MODEL_NAMES }: FindOptions,
  ): Promise<BucketModel> {
    const folder = await sources.list(text, project);
    const found: Found[] = [];
    const ignored: string[] = [];
    for (const name of folder.names) {
      const kind = kindOf(name, names);
      if (kind !== null) found.push({ name, kind, object: await folder.find(name) });
      else if (ignored.length < MAX_IGNORED) ignored.push(name);
    }
    // The documents first: a shard is checked against them while it is read.
    found.sort((a, b) => (a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind === 'document' ? -1 : 1));
    if (found.length > 0) return new BucketModel({ uri: folder.uri, ...versionOf(found) }, found, ignored);
    throw new ZerofleetError(
      'model_file_missing',
      'the folder has neither config.json nor weights; its URI must be that of the files of a Hugging Face model, or with base of a PEFT folder',
    );
  }

  get bytes(): number {
    return this.found.reduce((sum, { object }) => sum + object.bytes, 0);
  }

  /** @throws (while it is read) as `SourceObject.read` */
  async *files(signal: AbortSignal): AsyncGenerator<FolderFile> {
    for (const { name, kind, object } of this.found) {
      yield { name, kind, bytes: object.bytes, content: untilAborted(object.read(signal), signal) };
    }
  }

  /**
   * Model properties from `config.json` and the file names; nothing else is read. The preview has no tokenizer, and its
   * URI instead of an id.
   * @throws ZerofleetError `model_file_missing`, `model_too_large`, `model_config_invalid`, `content_too_complex`;
   *   errors of reading the bucket
   */
  async preview(project: string, inspector: Inspector): Promise<Model> {
    if (!this.found.some(({ kind }) => kind === 'weights')) throw missing('model.safetensors without shards');
    const read = async () => ({ bytes: await this.config() });
    const described = await inspector.run('readConfig', read, { owner: project });
    const names = this.found.map(({ name }) => name);
    return {
      id: this.source.uri,
      project,
      name: '',
      description: '',
      ...described,
      dtypes: [],
      has_tokenizer: tokenizerFileIn(names) !== undefined,
      ...unreadIn(names),
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
    return collectBytes(object.read(), object.bytes);
  }
}

/** Version of a set of files; none if the server reports no changes of files. */
export function versionOf(found: readonly Pick<Found, 'name' | 'object'>[]): { version?: string } {
  if (found.some(({ object }) => object.etag === '')) return {};
  const hash = createHash('sha256');
  for (const { name, object } of found) hash.update(`${name} ${object.bytes} ${object.etag}\n`);
  return { version: `sha256:${hash.digest('hex')}` };
}
