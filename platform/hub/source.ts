/** Files of repositories on the Hugging Face Hub, as sources of datasets, models and tokenizers. */
import { type HubUri, hubUriText, isCommit, parseHubUri, ZerofleetError } from '../../contracts/index.js';
import { type ContentSource, readUri, type SourceFolder, type SourceObject } from '../content-sources.js';
import { Check, type Static, Type } from '../schema.js';
import { HubClient, type HubClientOptions, type HubRequest } from './client.js';
import { download } from './download.js';
import { unavailable } from './errors.js';
import { piecesOf } from './pieces.js';

interface HubSourceOptions extends HubClientOptions {
  /** Returns the token of a project; null for none. */
  token(project: string): Promise<string | null>;
}

const sha1 = Type.String({ pattern: '^[0-9a-f]{40}$' });
const Revision = new Check(Type.Object({ sha: sha1 }));
/** An entry of a listing. A file in large-file storage, LFS or Xet, has its SHA-256 in `lfs`. */
const Entry = Type.Object({
  type: Type.String(),
  path: Type.String(),
  oid: sha1,
  size: Type.Optional(Type.Integer({ minimum: 0 })),
  lfs: Type.Optional(
    Type.Object({
      oid: Type.String({ pattern: '^[0-9a-f]{64}$' }),
      size: Type.Integer({ minimum: 0 }),
    }),
  ),
});
type Entry = Static<typeof Entry>;
const Listing = new Check(Type.Array(Entry));

/** Maximum of entries in a folder, more than any model has. */
const MAX_ENTRIES = 10_000;
const MAX_PAGES = 100;
/** Maximum of a document of the Hub's API. It is parsed in this thread; a page of a listing has some 400 kB. */
const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;

/** A folder or file at a commit, with the right to read it. */
interface Pinned {
  uri: HubUri;
  token: string | null;
}

/** Each look-up first determines the commit, and everything after it refers to that commit. */
export class HubSource implements ContentSource {
  private readonly client: HubClient;

  constructor(private readonly options: HubSourceOptions) {
    this.client = new HubClient(options);
  }

  async find(text: string, project: string): Promise<SourceObject> {
    const { uri, token } = await this.pin(text, project);
    const folder = uri.path.split('/').slice(0, -1).join('/');
    for await (const entry of this.entries({ uri: { ...uri, path: folder }, token }))
      if (entry.path === uri.path && entry.type === 'file') return this.objectOf(entry, { uri, token });
    throw new ZerofleetError('dataset_source_missing', `there is no file ${hubUriText(uri)}`);
  }

  async list(text: string, project: string): Promise<SourceFolder> {
    const pinned = await this.pin(text, project);
    const files = new Map<string, Entry>();
    for await (const entry of this.entries(pinned))
      if (entry.type === 'file') files.set(entry.path.split('/').at(-1) ?? '', entry);
    const uri = hubUriText(pinned.uri);
    const find = async (name: string) => {
      const entry = files.get(name);
      if (entry !== undefined) return this.objectOf(entry, pinned);
      throw new ZerofleetError('dataset_source_missing', `there is no ${uri}/${name}`);
    };
    return { uri, names: [...files.keys()].sort(), find };
  }

  private async pin(text: string, project: string): Promise<Pinned> {
    const uri = readUri(text, parseHubUri);
    const token = await this.options.token(project);
    if (isCommit(uri.revision)) return { uri, token };
    // Without `expand` the answer lists all files.
    const path = `${apiPath(uri)}/revision/${encodeURIComponent(uri.revision)}?expand=sha`;
    const { document } = await this.document({ path, name: text, token });
    if (!Revision.fits(document)) throw unavailable(text, 'its answer names no commit');
    return { uri: { ...uri, revision: document.sha }, token };
  }

  /** Entries directly in a folder. */
  private async *entries({ uri, token }: Pinned): AsyncGenerator<Entry> {
    const name = hubUriText(uri);
    const path = `${apiPath(uri)}/tree/${uri.revision}${uri.path === '' ? '' : `/${encodePath(uri.path)}`}`;
    let cursor: string | null = '';
    let count = 0;
    for (let pages = 0; cursor !== null; pages += 1) {
      const query: string = cursor === '' ? '' : `?${new URLSearchParams({ cursor })}`;
      const { document, next } = await this.document({
        path: `${path}${query}`,
        name,
        token,
        commit: uri.revision,
      });
      if (!Listing.fits(document)) throw unavailable(name, 'its answer is no list of files');
      count += document.length;
      if (count > MAX_ENTRIES || pages === MAX_PAGES)
        throw new ZerofleetError('model_archive_invalid', `${name} has more than ${MAX_ENTRIES} files`);
      yield* document;
      cursor = next;
    }
  }

  private objectOf({ path, size = 0, oid, lfs }: Entry, { uri, token }: Pinned): SourceObject {
    const { client } = this;
    const name = hubUriText({ ...uri, path });
    const prefix = uri.kind === 'dataset' ? '/datasets' : '';
    const request = {
      path: `${prefix}/${uri.repository}/resolve/${uri.revision}/${encodePath(path)}`,
      name,
      token,
      commit: uri.revision,
    };
    const bytes = lfs?.size ?? size;
    const hash = lfs ? { kind: 'sha256' as const, hex: lfs.oid } : { kind: 'git' as const, hex: oid };
    const read = (signal?: AbortSignal) => download(client, { request, bytes, hash }, signal);
    return { uri: name, bytes, etag: `${hash.kind}:${hash.hex}`, read };
  }

  /** @returns a document of the API, and the cursor of its next page */
  private async document(request: HubRequest): Promise<{ document: unknown; next: string | null }> {
    const { headers, body } = await this.client.get(request);
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    try {
      for await (const piece of piecesOf(body, this.client.silenceMs)) {
        pieces.push(piece);
        bytes += piece.length;
        if (bytes > MAX_DOCUMENT_BYTES)
          throw new Error(`an answer has more than ${MAX_DOCUMENT_BYTES} bytes`);
      }
      const document: unknown = JSON.parse(Buffer.concat(pieces).toString('utf8'));
      return { document, next: nextCursor(headers.get('link')) };
    } catch (error) {
      throw unavailable(request.name, 'its answer cannot be read', error);
    }
  }
}

function apiPath({ kind, repository }: HubUri): string {
  return `/api/${kind}s/${repository}`;
}

function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

/** Only the cursor of a link is used, so that the Hub cannot send the token elsewhere. */
function nextCursor(link: string | null): string | null {
  const [, url = ''] = /<([^>]{1,4096})>;\s*rel="next"/.exec(link ?? '') ?? [];
  return URL.canParse(url, 'http://hub') ? new URL(url, 'http://hub').searchParams.get('cursor') : null;
}
