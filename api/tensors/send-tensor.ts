import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { StateName } from '../../contracts/rank-protocol.js';
import { BYTES_PER_ELEMENT } from '../../formats/checkpoint/shard-contents.js';
import { VerifiedChunks } from '../../formats/checkpoint/verified-chunks.js';
import { safetensorsHeader } from '../../formats/safetensors/header.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { onClosed } from '../http/long-request.js';
import type { FoundTensor } from './find-tensor.js';

/** Chunks of 4 MiB that one answer holds. */
const CACHED_CHUNKS = 4;

interface SentTensor {
  /** Key of the checkpoint's directory. */
  directory: string;
  checkpoint_id: string;
  name: string;
  state: StateName;
  found: FoundTensor;
}

/**
 * Sends a tensor as a safetensors file, assembled from the shards. The first bytes are read before the answer begins,
 * so that a damaged checkpoint is answered with an error. A HEAD reads nothing.
 * @throws ZerofleetError `shard_corrupt`, `rate_limited`; errors of the object store
 */
export async function sendTensor(
  { server, method, records }: FastifyRequest,
  reply: FastifyReply,
  tensor: SentTensor,
): Promise<FastifyReply> {
  const { objects, tensors } = server.services;
  const header = headerOf(tensor);
  const content = async () => {
    onClosed(reply, tensors.begin(records.project));
    const elements = elementsOf(objects, tensor);
    const first = await elements.next();
    return joined([header, ...(first.done ? [] : [first.value])], elements);
  };
  const body = Readable.from(method === 'HEAD' ? [] : await content(), { objectMode: false });
  reply
    .header('cache-control', 'private, no-store')
    .header('content-disposition', 'attachment')
    .header('content-length', header.length + bytesOf(tensor))
    .type('application/octet-stream');
  return reply.send(body);
}

function bytesOf({ found }: SentTensor): number {
  return found.shape.reduce((product, size) => product * size, BYTES_PER_ELEMENT);
}

function headerOf(tensor: SentTensor): Buffer {
  const { checkpoint_id, name, state, found } = tensor;
  const { shape } = found;
  const entry = { name, dtype: 'F32' as const, shape, begin: 0, end: bytesOf(tensor) };
  return safetensorsHeader([entry], { checkpoint: checkpoint_id, state });
}

async function* elementsOf(
  objects: ObjectStore,
  { directory, found: { files, reads } }: SentTensor,
): AsyncGenerator<Uint8Array> {
  const get = (file: string, range: { begin: number; end: number }) =>
    objects.get(`${directory}/${file}`, range);
  const chunks = new VerifiedChunks({ files, get, cached: CACHED_CHUNKS });
  for (let at = 0; at < reads.length; at += 3) {
    const [file = 0, begin = 0, end = 0] = reads.subarray(at, at + 3);
    yield* chunks.read(files[file]?.file ?? '', begin, end);
  }
}

async function* joined(
  first: readonly Uint8Array[],
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* first;
  yield* rest;
}
