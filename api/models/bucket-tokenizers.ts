import { createHash } from 'node:crypto';
import type { Model } from '../../contracts/index.js';
import { TOKENIZER_FILE } from '../../formats/models/documents.js';
import type { ContentSource, SourceObject } from '../../platform/content-sources.js';
import { requireDocumentSize } from '../contents/documents.js';
import type { Inspector } from '../inspection/inspector.js';
import { versionOf } from './bucket-folder.js';
import { collectBytes } from './collect-bytes.js';
import { digestOf } from './folder.js';

/** Content of a `tokenizer.json`, independent of its URI. */
interface Content {
  /** Digest of a model that consists of this file only. */
  digest: string;
  tokenizer: NonNullable<Model['tokenizer']>;
}

/** A version of a `tokenizer.json` in a bucket that was read. */
export interface BucketTokenizer extends Content {
  source: NonNullable<Model['source']>;
  object: SourceObject;
}

/** Maximum number of cached objects. */
const MAX_CACHED = 1000;

/**
 * Cache of tokenizers that documents refer to by URI. Parsing a large vocabulary takes half a second, so each object
 * version is read once.
 */
export class BucketTokenizers {
  /** By URI and version. */
  private readonly known = new Map<string, Promise<Content>>();

  constructor(
    private readonly sources: Pick<ContentSource, 'find'>,
    private readonly inspector: Inspector,
  ) {}

  /**
   *  @param project project of the request
   * @throws ZerofleetError `model_too_large`, `tokenizer_invalid`, `content_too_complex`; errors of the sources
   */
  async find(uri: string, project: string): Promise<BucketTokenizer> {
    const object = await this.sources.find(uri, project);
    requireDocumentSize(TOKENIZER_FILE, object.bytes, uri);
    const source = { uri: object.uri, ...versionOf([{ name: TOKENIZER_FILE, object }]) };
    return { ...(await this.content(source, object, project)), source, object };
  }

  private content(
    { uri, version }: BucketTokenizer['source'],
    object: SourceObject,
    project: string,
  ): Promise<Content> {
    // Without an ETag, changes of an object cannot be detected.
    if (version === undefined) return this.read(object, project);
    const key = `${version} ${uri}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const content = this.read(object, project);
    this.known.set(key, content);
    content.catch(() => this.known.delete(key));
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_CACHED && oldest !== undefined) this.known.delete(oldest);
    return content;
  }

  private async read(object: SourceObject, owner: string): Promise<Content> {
    const hash = createHash('sha256');
    const read = async () => ({ bytes: await collectBytes(object.read(), object.bytes, hash) });
    const tokenizer = await this.inspector.run('readTokenizer', read, { owner });
    return { digest: digestOf([{ name: TOKENIZER_FILE, sha256: hash.digest('hex') }]), tokenizer };
  }
}

/** Preview of the copy before it exists. It has its URI instead of an id. */
export function previewOf({ source, object, digest, tokenizer }: BucketTokenizer, project: string): Model {
  return {
    id: source.uri,
    project,
    name: '',
    description: '',
    model_type: null,
    num_parameters: 0,
    dtypes: [],
    has_tokenizer: true,
    tokenizer,
    source,
    bytes: object.bytes,
    digest,
    files: [],
    ignored_files: [],
    config: {},
    created_at: '',
  };
}
