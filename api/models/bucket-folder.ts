import { ZerofleetError } from '../../contracts/index.js';
import type { SourceObject } from '../../platform/object-store/s3-source.js';
import { untilAborted } from '../http/long-request.js';
import { type FolderFile, kindOf, MAX_IGNORED } from './folder.js';

/** A folder of a bucket: the names of the objects right in it, and how one is found. */
export interface BucketFolder {
  names: readonly string[];
  find(name: string): Promise<SourceObject>;
}

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
    private readonly found: readonly Found[],
    readonly ignored: string[],
  ) {}

  /** @throws ZerofleetError those of the folder's `find` */
  static async find({ names, find }: BucketFolder): Promise<BucketModel> {
    const found: Found[] = [];
    const ignored: string[] = [];
    for (const name of names) {
      const kind = kindOf(name);
      if (kind !== null) found.push({ name, kind, object: await find(name) });
      else if (ignored.length < MAX_IGNORED) ignored.push(name);
    }
    // The documents first: a shard is checked against them while it is read.
    found.sort((a, b) => (a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind === 'document' ? -1 : 1));
    if (found.length > 0) return new BucketModel(found, ignored);
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
}
