/**
 * Stand-in for the Hugging Face Hub: revisions, listings in pages, and files. A second server (the CDN) serves the
 * files after a redirect, as the Hub does for files in LFS and Xet. Small files are served by the Hub itself.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Files of a commit, by path. */
type Files = ReadonlyMap<string, Buffer>;

interface Repository {
  /** Content of each commit. */
  commits: Map<string, Files>;
  /** Commit of each branch and tag. */
  revisions: Map<string, string>;
  /** Token that may read it; null for a public one. */
  token?: string;
  /** True if the token's account has not accepted the conditions. */
  gated?: boolean;
}

/** A request as a server received it. */
export interface HubCall {
  server: 'hub' | 'cdn';
  path: string;
  authorization: string | undefined;
  range: string | undefined;
  method: string;
  body(): Promise<Buffer>;
}

/** Answers a request in place of the stand-in. Returns false to let it answer. */
type Answer = (call: HubCall, response: ServerResponse) => boolean | Promise<boolean>;

/** From this size on a file is in large-file storage. */
const LFS_BYTES = 1000;

export class HubStandIn {
  /** By `owner/name`, for datasets `datasets/owner/name`. */
  readonly repositories = new Map<string, Repository>();
  readonly calls: HubCall[] = [];
  /** Called with each request. */
  answer: Answer = () => false;
  pageSize = 2;
  private readonly hub = createServer((request, response) => void this.serve('hub', request, response));
  private readonly cdn = createServer((request, response) => void this.serve('cdn', request, response));

  /** Serves on loopback. */
  static async start(): Promise<HubStandIn> {
    const made = new HubStandIn();
    for (const server of [made.hub, made.cdn]) {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
    }
    return made;
  }

  /** `http://127.0.0.1:PORT` */
  get endpoint(): string {
    return urlOf(this.hub);
  }

  /** URL of the server of files. */
  get files(): string {
    return urlOf(this.cdn);
  }

  /** Adds a commit to a repository, and moves its branch. @returns the commit */
  commit(name: string, files: Files, branch = 'main'): string {
    const known = this.repositories.get(name) ?? { commits: new Map(), revisions: new Map() };
    const commit = createHash('sha1').update(`${name} ${known.commits.size}`).digest('hex');
    known.commits.set(commit, files);
    known.revisions.set(branch, commit);
    this.repositories.set(name, known);
    return commit;
  }

  /** Requests of the server of files, with their ranges. */
  get downloads(): string[] {
    return this.calls
      .filter(({ server }) => server === 'cdn')
      .map(({ path, range }) => [path.split('/').at(-1)?.split('?')[0], range].filter(Boolean).join(' '));
  }

  close(): void {
    for (const server of [this.hub, this.cdn]) {
      server.closeAllConnections();
      server.close();
    }
  }

  private async serve(
    server: 'hub' | 'cdn',
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<unknown> {
    const { authorization, range } = request.headers;
    const { url: path = '', method = '' } = request;
    const body = async () => Buffer.concat(await request.toArray());
    const call = { server, path, authorization, range, method, body };
    this.calls.push(call);
    if (await this.answer(call, response)) return;
    const url = new URL(call.path, 'http://hub');
    if (server === 'cdn') return this.serveFile(url, call, response);
    return this.serveRepository(url, call, response);
  }

  private serveRepository(url: URL, { authorization, range }: HubCall, response: ServerResponse) {
    const { isApi, full, action, revision, path } = askedFor(url.pathname);
    const found = this.repositories.get(full);
    if (found === undefined) return refuse(response, authorization === undefined ? 401 : 404, 'RepoNotFound');
    if (found.token !== undefined && authorization !== `Bearer ${found.token}`)
      return refuse(response, 401, found.gated ? 'GatedRepo' : 'RepoNotFound');
    if (found.gated && action === 'resolve') return refuse(response, 403, 'GatedRepo');
    const commit = found.revisions.get(revision) ?? revision;
    const files = found.commits.get(commit);
    if (files === undefined) return refuse(response, 404, 'RevisionNotFound');
    response.setHeader('x-repo-commit', commit);
    if (isApi && action === 'revision') return send(response, { id: full, sha: commit });
    if (isApi) return this.list(response, { files, folder: path, url });
    const file = files.get(path);
    if (file === undefined) return refuse(response, 404, 'EntryNotFound');
    if (file.length < LFS_BYTES) return sendBytes(response, file, range);
    const location = `${this.files}/${full}/${commit}/${path}?Signature=${'s'.repeat(20)}`;
    return response.writeHead(302, { location }).end();
  }

  private serveFile({ pathname }: URL, { range }: HubCall, response: ServerResponse): ServerResponse {
    for (const [name, { commits }] of this.repositories)
      for (const [commit, files] of commits) {
        const prefix = `/${name}/${commit}/`;
        const file = pathname.startsWith(prefix)
          ? files.get(decodeURIComponent(pathname.slice(prefix.length)))
          : null;
        if (file) return sendBytes(response, file, range);
      }
    return response.writeHead(403).end();
  }

  private list(
    response: ServerResponse,
    { files, folder, url }: { files: Files; folder: string; url: URL },
  ): ServerResponse {
    const prefix = folder === '' ? '' : `${folder}/`;
    const inside = [...files].filter(([path]) => path.startsWith(prefix));
    if (inside.length === 0) return refuse(response, 404, 'EntryNotFound');
    const entries = inside.map(([path, bytes]) => entryOf(path, bytes, prefix));
    const unique = [...new Map(entries.map((entry) => [entry.path, entry])).values()];
    const begin = Number(url.searchParams.get('cursor') ?? 0);
    const end = begin + this.pageSize;
    // Another host, which clients must not follow.
    if (end < unique.length)
      response.setHeader('link', `<http://127.0.0.1:1${url.pathname}?cursor=${end}>; rel="next"`);
    return send(response, unique.slice(begin, end));
  }
}

/** Parts of a path: `/api/models/owner/name/tree/revision/path`, `/datasets/owner/name/resolve/revision/path`. */
function askedFor(pathname: string) {
  const [, api, kind, owner, name, action = '', revision = '', path = ''] =
    /^\/(api\/)?(?:(models|datasets)\/)?([^/]+)\/([^/]+)\/([^/]+)\/([^/]+)(?:\/(.*))?$/.exec(pathname) ?? [];
  const full = `${kind === 'datasets' ? 'datasets/' : ''}${owner}/${name}`;
  const [at, file] = [revision, path].map(decodeURIComponent) as [string, string];
  return { isApi: api !== undefined, full, action, revision: at, path: file };
}

function entryOf(path: string, bytes: Buffer, prefix: string) {
  const below = path.slice(prefix.length).split('/');
  if (below.length > 1)
    return { type: 'directory', oid: gitHash(Buffer.alloc(0)), size: 0, path: `${prefix}${below[0]}` };
  if (bytes.length < LFS_BYTES) return { type: 'file', oid: gitHash(bytes), size: bytes.length, path };
  const oid = createHash('sha256').update(bytes).digest('hex');
  const pointer = Buffer.from(
    `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${bytes.length}\n`,
  );
  const lfs = { oid, size: bytes.length, pointerSize: pointer.length };
  // Files in Xet have the hash of their chunks as well.
  return { type: 'file', oid: gitHash(pointer), size: bytes.length, path, lfs, xetHash: 'c'.repeat(64) };
}

function gitHash(bytes: Buffer): string {
  return createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
}

/** Sends a file or the rest of it. A range that begins at its end is answered by 416. */
export function sendBytes(
  response: ServerResponse,
  bytes: Buffer,
  range: string | undefined,
): ServerResponse {
  const [, from] = /^bytes=(\d+)-$/.exec(range ?? '') ?? [];
  const begin = Number(from ?? 0);
  if (from === undefined) return response.writeHead(200, { 'content-length': bytes.length }).end(bytes);
  if (begin >= bytes.length)
    return response.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end();
  const rest = bytes.subarray(begin);
  const sent = `bytes ${begin}-${bytes.length - 1}/${bytes.length}`;
  return response.writeHead(206, { 'content-length': rest.length, 'content-range': sent }).end(rest);
}

function send(response: ServerResponse, document: unknown): ServerResponse {
  return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
}

function refuse(response: ServerResponse, status: number, code: string): ServerResponse {
  return response.writeHead(status, { 'x-error-code': code }).end(JSON.stringify({ error: code }));
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
