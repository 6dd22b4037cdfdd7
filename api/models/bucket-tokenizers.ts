import { createHash } from 'node:crypto';
import { type Model, ZerofleetError } from '../../contracts/index.js';
import type { DatasetSources } from '../../platform/dataset-sources.js';
import { TOKENIZER_FILE } from '../../platform/models/documents.js';
import type { SourceObject } from '../../platform/object-store/s3-source.js';
import { versionOf } from './bucket-folder.js';
import { MAX_DOCUMENT_BYTES, parseDocument } from './documents.js';
import { digestOf } from './folder.js';
import { describeTokenizer } from './tokenizer.js';

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

  constructor(private readonly sources: Pick<DatasetSources, 'find'>) {}

  /** @throws ZerofleetError `model_too_large`, `tokenizer_invalid`; those of the sources */
  async find(uri: string): Promise<BucketTokenizer> {
    const object = await this.sources.find(uri);
    if (object.bytes > MAX_DOCUMENT_BYTES)
      throw new ZerofleetError(
        'model_too_large',
        `${uri} has ${object.bytes} bytes, and a tokenizer may have at most ${MAX_DOCUMENT_BYTES}`,
      );
    const source = { uri, ...versionOf([{ name: TOKENIZER_FILE, object }]) };
    return { ...(await this.content(source, object)), source, object };
  }

  private content({ uri, version }: BucketTokenizer['source'], object: SourceObject): Promise<Content> {
    // A server that gives no ETags doesn't say when an object has changed.
    if (version === undefined) return readContent(object);
    const key = `${version} ${uri}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const content = readContent(object);
    this.known.set(key, content);
    content.catch(() => this.known.delete(key));
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_KNOWN && oldest !== undefined) this.known.delete(oldest);
    return content;
  }
}

async function readContent(object: SourceObject): Promise<Content> {
  const pieces: Uint8Array[] = [];
  for await (const piece of object.read()) pieces.push(piece);
  const bytes = Buffer.concat(pieces);
  const tokenizer = describeTokenizer({
    tokenizer: parseDocument(TOKENIZER_FILE, bytes, 'tokenizer_invalid'),
  });
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { digest: digestOf([{ name: TOKENIZER_FILE, sha256 }]), tokenizer };
}

/** What is known of the copy before there is one. It has its URI instead of an id. */
export function previewOf({ source, object, digest, tokenizer }: BucketTokenizer, project: string): Model {
  return {
    id: source.uri,
    project,
    name: '',
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
