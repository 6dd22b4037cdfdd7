import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';
import type { ByteRange } from '../../platform/object-store/common/port.js';

/** An immutable object. */
interface SentObject {
  key: string;
  bytes: number;
  sha256: string;
}

/**
 * Sends an object of the store, or the requested range of it. A HEAD opens nothing.
 * @throws ZerofleetError `range_not_satisfiable`, `object_not_found`
 */
export async function sendObject(
  { server, method, headers }: FastifyRequest,
  reply: FastifyReply,
  { key, bytes, sha256 }: SentObject,
): Promise<FastifyReply> {
  const { objects } = server.services;
  const range = rangeOf(headers.range, bytes);
  const content = method === 'HEAD' ? [] : await objects.stream(key, range ?? undefined);
  reply
    .header('etag', `"${sha256}"`)
    .header('cache-control', 'private, no-store')
    .header('accept-ranges', 'bytes')
    .header('content-disposition', 'attachment')
    .header('content-length', range ? range.end - range.begin : bytes)
    .type('application/octet-stream');
  if (range) reply.code(206).header('content-range', `bytes ${range.begin}-${range.end - 1}/${bytes}`);
  return reply.send(Readable.from(content, { objectMode: false }));
}

/** Returns null for the whole file. @throws ZerofleetError `range_not_satisfiable` */
function rangeOf(header: string | undefined, bytes: number): ByteRange | null {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(header ?? '') ?? [];
  if (first === undefined) return null;
  const begin = Number(first);
  const end = last ? Math.min(Number(last) + 1, bytes) : bytes;
  if (begin < end) return { begin, end };
  throw new ZerofleetError('range_not_satisfiable', `the file has ${bytes} bytes`);
}
