import type { DownloadFile } from '../../contracts/types.js';
import { ApiError } from './errors.js';
import { bodyOf, type Http } from './transport.js';

/** Opens a file of a download list: a path of the API with the key, any other URL without. */
export async function openFile(
  http: Http,
  send: (request: Request) => Promise<Response>,
  { name, url }: DownloadFile,
  { from = 0, signal }: { from?: number; signal?: AbortSignal },
): Promise<ReadableStream<Uint8Array>> {
  const headers: Record<string, string> = from > 0 ? { Range: `bytes=${from}-` } : {};
  const body = url.startsWith('/')
    ? await openPath(http, { name, url }, headers, signal)
    : await openUrl(send, { name, url }, headers, signal);
  if (body === null) throw new Error(`${name}: an answer without a body`);
  return body;
}

type Opened = Promise<ReadableStream<Uint8Array> | null>;
type Named = Pick<DownloadFile, 'name' | 'url'>;

async function openPath(
  http: Http,
  { name, url }: Named,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Opened {
  const { pathname, searchParams } = new URL(url, 'http://api');
  const [, checkpointId] = /^\/v1\/checkpoints\/(\w+)\/file$/.exec(pathname) ?? [];
  if (checkpointId === undefined) throw new Error(`${name}: the API knows no such path: ${url}`);
  const query = Object.fromEntries(searchParams) as { name: string };
  return bodyOf(
    name,
    http.GET('/v1/checkpoints/{checkpoint_id}/file', {
      params: { path: { checkpoint_id: checkpointId }, query },
      headers,
      parseAs: 'stream',
      ...(signal && { signal }),
    }),
  ) as Opened;
}

async function openUrl(
  send: (request: Request) => Promise<Response>,
  { name, url }: Named,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Opened {
  const response = await send(new Request(url, { headers, ...(signal && { signal }) }));
  if (response.ok) return response.body;
  await response.body?.cancel();
  throw new ApiError(response.status, null, name);
}
