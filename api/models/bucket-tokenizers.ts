import { createHash } from 'node:crypto';
import type { Model } from '../../contracts/index.js';
import type { DatasetSources } from '../../platform/dataset-sources.js';
import { TOKENIZER_FILE } from '../../platform/models/documents.js';
import type { SourceObject } from '../../platform/object-store/s3/source.js';
import { requireDocumentSize } from '../contents/documents.js';
import type { Inspector } from '../inspection/inspector.js';
import { versionOf } from './bucket-folder.js';
import { digestOf } from './folder.js';
import { wholeOf } from './whole.js';

/** What a `tokenizer.json` is, whichever its URI. */
interface Content {
  /** As the digest of the model that has no other file. */
  digest: string;
  tokenizer: NonNullable<Model['tokenizer']>;
}

/** A `tokenizer.json` in a bucket that was read, as it was then. */
export interface BucketTokenizer extends Content {
  source: NonNullable<Model['source']>;
  object: SourceObject;
}

/** Objects whose content is remembered. */
const MAX_KNOWN = 1000;

/**
 * The tokenizers that documents name by URI. Reading one of a large vocabulary takes a server half a second of its time, so each object
 * is read once for as long as it stays the same.
 */
export class BucketTokenizers {
  /** By URI and version. */
  private readonly known = new Map<string, Promise<Content>>();

  constructor(
    private readonly sources: Pick<DatasetSources, 'find'>,
    private readonly inspector: Inspector,
  ) {}

  /**
   * @param project that asks
   * @throws ZerofleetError `model_too_large`, `tokenizer_invalid`, `content_too_complex`; those of the sources
   */
  async find(uri: string, project: string): Promise<BucketTokenizer> {
    const object = await this.sources.find(uri);
    requireDocumentSize(TOKENIZER_FILE, object.bytes, uri);
    const source = { uri, ...versionOf([{ name: TOKENIZER_FILE, object }]) };
    return { ...(await this.content(source, object, project)), source, object };
  }

  private content(
    { uri, version }: BucketTokenizer['source'],
    object: SourceObject,
    project: string,
  ): Promise<Content> {
    // A server that gives no ETags doesn't say when an object has changed.
    if (version === undefined) return this.read(object, project);
    const key = `${version} ${uri}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const content = this.read(object, project);
    this.known.set(key, content);
    content.catch(() => this.known.delete(key));
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_KNOWN && oldest !== undefined) this.known.delete(oldest);
    return content;
  }

  private async read(object: SourceObject, owner: string): Promise<Content> {
    const hash = createHash('sha256');
    const bytes = await wholeOf(object.read(), object.bytes, hash);
    const sha256 = hash.digest('hex');
    const tokenizer = await this.inspector.run('readTokenizer', { bytes }, { owner });
    return { digest: digestOf([{ name: TOKENIZER_FILE, sha256 }]), tokenizer };
  }
}

/** What is known of the copy before there is one. It has its URI instead of an id. */
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
