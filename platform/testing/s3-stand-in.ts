/**
 * In-memory stand-in for the S3 calls of our object store, for tests that break individual requests. A real
 * server is tested with radosgw.ts. Like an AWS bucket with Object Lock it refuses bytes without a checksum.
 * `refuse` decides on permissions. Excluded: signatures, conditions other than `If-None-Match: *` on writes
 * and `If-Match` on reads, pages.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { crc32 } from '@node-rs/crc32';

/**
 * Outcome of a request. `cut`: its connection is reset before it has any effect, `mute`: after its effect.
 */
export type Fate = 'served' | 'cut' | 'mute';

interface StandInServer {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string;
  close(): void;
}

/** Request with its sender. */
export interface StandInRequest {
  access_key_id: string;
  session_token: string | null;
  /** IAM action. */
  action: string;
  /** Key without the bucket; the prefix of a list. */
  key: string;
}

interface Upload {
  key: string;
  parts: Map<number, Buffer>;
}

interface Call {
  method: string;
  /** Key without the bucket. */
  key: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: Buffer | string;
}

/** Storage that is shared by all servers opened on it. */
export class S3StandIn {
  readonly objects = new Map<string, Buffer>();
  readonly uploads = new Map<string, Upload>();
  /** Returns the S3 error code that refuses a request; null to serve it. */
  refuse: (request: StandInRequest) => string | null = () => null;
  /** True to overwrite in spite of `If-None-Match: *`, like older servers. */
  overwrites = false;
  private begun = 0;

  /** Serves on loopback. @param fate called with the name of each request, in order */
  async open(fate: (name: string) => Fate = () => 'served'): Promise<StandInServer> {
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://localhost');
      const key = decodeURIComponent(url.pathname.split('/').slice(2).join('/'));
      const method = request.method ?? '';
      const end = fate(nameOf(method, key, url.searchParams));
      if (end === 'cut') {
        request.socket.resetAndDestroy();
        return;
      }
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const call = { method, key, query: url.searchParams, headers: request.headers };
        const reply = this.answer({ ...call, body: Buffer.concat(pieces) });
        if (end === 'mute') request.socket.resetAndDestroy();
        else send(response, reply);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return {
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      close: () => {
        server.closeAllConnections();
        server.close();
      },
    };
  }

  private answer(call: Call): Reply {
    const { method, query } = call;
    const refusal = this.refuse(requestOf(call));
    if (refusal !== null) return failure(refusal === 'ExpiredToken' ? 400 : 403, refusal);
    if (method === 'PUT' && !hasChecksum(call)) return failure(400, 'InvalidRequest');
    if (query.has('uploads')) return method === 'POST' ? this.beginUpload(call) : this.listUploads(call);
    if (query.has('uploadId')) return this.inUpload(call, query.get('uploadId') ?? '');
    if (query.has('list-type')) return this.list(call);
    if (method === 'PUT') return this.put(call);
    if (method === 'DELETE') return this.delete(call);
    return this.get(call);
  }

  private put({ key, body, headers }: Call): Reply {
    const refused = headers['if-none-match'] === '*' && !this.overwrites && this.objects.has(key);
    if (refused) return failure(412, 'PreconditionFailed');
    this.objects.set(key, body);
    return { status: 200, headers: { etag: etagOf(body) } };
  }

  private get({ method, key, headers }: Call): Reply {
    const object = this.objects.get(key);
    if (!object) return failure(404, 'NoSuchKey');
    const etag = etagOf(object);
    const wanted = headers['if-match'];
    if (wanted !== undefined && wanted !== etag) return failure(412, 'PreconditionFailed');
    const range = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '');
    if (!range) {
      const headers = { etag, 'content-length': String(object.length) };
      return { status: 200, headers, body: method === 'HEAD' ? '' : object };
    }
    const [begin, last] = [Number(range[1]), Number(range[2])];
    if (begin >= object.length) return failure(416, 'InvalidRange');
    return { status: 206, headers: { etag }, body: object.subarray(begin, last + 1) };
  }

  private delete({ key }: Call): Reply {
    this.objects.delete(key);
    return { status: 204 };
  }

  private list({ query }: Call): Reply {
    const prefix = query.get('prefix') ?? '';
    const entries = [...this.objects].filter(([key]) => key.startsWith(prefix)).sort();
    const contents = entries.map(
      ([key, object]) =>
        `<Contents><Key>${key}</Key><Size>${object.length}</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified>` +
        `<ETag>${etagOf(object).replaceAll('"', '&quot;')}</ETag></Contents>`,
    );
    const rest = '<IsTruncated>false</IsTruncated>';
    return xml(`<ListBucketResult>${contents.join('')}${rest}</ListBucketResult>`);
  }

  private beginUpload({ key }: Call): Reply {
    this.begun += 1;
    const id = `upload-${this.begun}`;
    this.uploads.set(id, { key, parts: new Map() });
    return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
  }

  private listUploads({ query }: Call): Reply {
    const prefix = query.get('prefix') ?? '';
    const entries = [...this.uploads].filter(([, { key }]) => key.startsWith(prefix));
    const uploads = entries.map(
      ([id, { key }]) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`,
    );
    const rest = '<IsTruncated>false</IsTruncated>';
    return xml(`<ListMultipartUploadsResult>${uploads.join('')}${rest}</ListMultipartUploadsResult>`);
  }

  /** Handles a part, the completion or the abortion of an upload. An upload that has ended is unknown. */
  private inUpload({ method, query, body }: Call, id: string): Reply {
    const upload = this.uploads.get(id);
    if (!upload) return failure(404, 'NoSuchUpload');
    if (method === 'PUT') {
      upload.parts.set(Number(query.get('partNumber')), body);
      return { status: 200, headers: { etag: etagOf(body) } };
    }
    this.uploads.delete(id);
    if (method === 'DELETE') return { status: 204 };
    const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)];
    const sums = [...body.toString().matchAll(/<ChecksumCRC32>/g)];
    if (sums.length !== named.length) return failure(400, 'InvalidRequest');
    const parts = named.map(([, number]) => upload.parts.get(Number(number)) ?? Buffer.alloc(0));
    const whole = Buffer.concat(parts);
    this.objects.set(upload.key, whole);
    return xml(
      `<CompleteMultipartUploadResult><ETag>${etagOf(whole)}</ETag></CompleteMultipartUploadResult>`,
    );
  }
}

/** Returns the S3 operation name, with the last part of the key. */
function nameOf(method: string, key: string, query: URLSearchParams): string {
  const file = key.split('/').at(-1) ?? '';
  if (query.has('uploads'))
    return method === 'POST' ? `CreateMultipartUpload ${file}` : 'ListMultipartUploads';
  if (query.has('list-type')) return 'ListObjectsV2';
  const ofUpload: Record<string, string> = {
    PUT: 'UploadPart',
    POST: 'CompleteMultipartUpload',
    DELETE: 'AbortMultipartUpload',
  };
  const ofObject: Record<string, string> = {
    PUT: 'PutObject',
    GET: 'GetObject',
    HEAD: 'HeadObject',
    DELETE: 'DeleteObject',
  };
  return `${(query.has('uploadId') ? ofUpload : ofObject)[method] ?? method} ${file}`;
}

function requestOf({ method, key, query, headers }: Call): StandInRequest {
  const isList = query.has('list-type') || (method === 'GET' && query.has('uploads'));
  const ofObject: Record<string, string> = { PUT: 'PutObject', POST: 'PutObject', DELETE: 'DeleteObject' };
  const abort = method === 'DELETE' && query.has('uploadId');
  const token = headers['x-amz-security-token'];
  return {
    access_key_id: /Credential=([^/]+)/.exec(headers.authorization ?? '')?.[1] ?? '',
    session_token: token === undefined ? null : String(token),
    action: `s3:${isList || key === '' ? 'ListBucket' : abort ? 'AbortMultipartUpload' : (ofObject[method] ?? 'GetObject')}`,
    key: isList ? (query.get('prefix') ?? '') : key,
  };
}

/** Checks for a correct checksum, as an AWS bucket with a default retention requires. */
function hasChecksum({ headers, body }: Call): boolean {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(crc32(body));
  const sha256 = createHash('sha256').update(body).digest('base64');
  return (
    headers['x-amz-checksum-crc32'] === four.toString('base64') || headers['x-amz-checksum-sha256'] === sha256
  );
}

function etagOf(bytes: Buffer): string {
  return `"${createHash('sha256').update(bytes).digest('hex')}"`;
}

function xml(document: string): Reply {
  const head = '<?xml version="1.0" encoding="UTF-8"?>';
  return { status: 200, headers: { 'content-type': 'application/xml' }, body: head + document };
}

function failure(status: number, code: string): Reply {
  return { ...xml(`<Error><Code>${code}</Code><Message>${code}</Message></Error>`), status };
}

function send(response: ServerResponse, { status, headers, body = '' }: Reply): void {
  response.writeHead(status, { 'content-length': String(body.length), ...headers });
  response.end(body);
}
