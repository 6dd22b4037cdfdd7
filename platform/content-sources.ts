/** Sources of datasets, models and tokenizers besides uploads. */
import { ZerofleetError } from '../contracts/index.js';

/** Object as it was found. */
export interface SourceObject {
  /** Its URI. On the Hub it names the commit. */
  uri: string;
  bytes: number;
  /** Version of the content; empty if the source has none. */
  etag: string;
  /**
   * Reads it.
   * @param signal ends the reading
   * @throws (the iterator too) as `find`, and ZerofleetError `dataset_source_changed`, `dataset_source_corrupt`
   */
  read(signal?: AbortSignal): AsyncIterable<Uint8Array>;
}

/** Folder as it was listed. */
export interface SourceFolder {
  /** Its URI without a trailing slash. On the Hub it names the commit. */
  uri: string;
  /** Names of the objects directly in it. */
  names: string[];
  /** Finds one of these objects. @throws as `find` of the source */
  find(name: string): Promise<SourceObject>;
}

/** A server from which projects copy content. */
export interface ContentSource {
  /**
   * Finds an object.
   * @param project project that will own the copy
   * @throws ZerofleetError `invalid_parameter`, `dataset_uri_refused`, `dataset_source_missing`,
   *   `dataset_source_denied`, `hub_unavailable`, `hub_throttled`; ObjectStoreError when a bucket's server does not
   *   answer
   */
  find(uri: string, project: string): Promise<SourceObject>;
  /**
   * Lists a folder.
   * @param uri with or without a trailing slash
   * @throws as `find`; ZerofleetError `model_archive_invalid` for too many objects
   */
  list(uri: string, project: string): Promise<SourceFolder>;
}

interface Sources {
  buckets: ContentSource;
  /** Null if the operator has switched the Hub off. */
  hub: ContentSource | null;
}

/** Chooses the source by the scheme of the URI. */
export class ContentSources implements ContentSource {
  constructor(private readonly sources: Sources) {}

  async find(uri: string, project: string): Promise<SourceObject> {
    return this.sourceOf(uri).find(uri, project);
  }

  async list(uri: string, project: string): Promise<SourceFolder> {
    return this.sourceOf(uri).list(uri, project);
  }

  private sourceOf(uri: string): ContentSource {
    const { buckets, hub } = this.sources;
    if (!uri.startsWith('hf://')) return buckets;
    if (hub !== null) return hub;
    throw new ZerofleetError(
      'dataset_uri_refused',
      `nothing may be copied from ${uri}: the operator has switched the Hugging Face Hub off ` +
        '(ZEROFLEET_HUB_ENDPOINT); upload the content, or name a bucket',
    );
  }
}

/**
 * Parses an URI of a request.
 * @throws ZerofleetError `invalid_parameter`
 */
export function readUri<T>(text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (error) {
    const message = `${JSON.stringify(text)} ${(error as Error).message}`;
    throw new ZerofleetError('invalid_parameter', message, {
      fields: [{ pointer: '/query/uri', code: 'wrong_format', message }],
    });
  }
}
