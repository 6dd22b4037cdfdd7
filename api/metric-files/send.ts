import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { MeasuredJob, ReadMetrics } from '../../formats/metric-files/tensorboard.js';
import { onClosed, untilAborted } from '../http/long-request.js';
import type { MetricFormat } from './format.js';

/** Bytes that are sent at once. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Sends metrics as a file. The client sets the pace: memory is bounded by one chunk and one read of the store. The
 * connection is broken, so that the file is not taken for a complete one, when the store fails, the key is revoked or
 * the server shuts down.
 */
export async function sendMetrics(
  request: FastifyRequest,
  reply: FastifyReply,
  job: MeasuredJob,
  format: MetricFormat,
  read: ReadMetrics,
): Promise<FastifyReply> {
  const { closing, keyWatch } = request.server.services;
  const gone = new AbortController();
  onClosed(reply, () => gone.abort());
  const signal = AbortSignal.any([gone.signal, closing, keyWatch.watch(request, gone.signal)]);
  const chunks = inChunks(format.encode(() => untilAborted(read(), signal), job));
  // An error before the first chunk is answered as a problem document.
  const first = await chunks.next();
  const content = async function* () {
    if (first.done) return;
    yield first.value;
    yield* chunks;
  };
  reply
    .header('cache-control', 'private, no-store')
    .header('content-disposition', `attachment; filename="${format.nameOf(job)}"`)
    .type(format.contentType);
  return reply.send(Readable.from(content(), { objectMode: false, highWaterMark: CHUNK_BYTES }));
}

async function* inChunks(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    const part = Buffer.from(piece);
    parts.push(part);
    bytes += part.length;
    if (bytes < CHUNK_BYTES) continue;
    yield Buffer.concat(parts);
    parts = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(parts);
}
