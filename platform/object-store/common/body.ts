import { ObjectStoreError } from './errors.js';
import { CREATE_ONLY_MAX_BYTES, type PutBody } from './port.js';

/**
 * Error of the body's own iterator, distinguished from errors of the store until it is passed on unchanged.
 */
export class BodyError extends Error {
  constructor(override readonly cause: unknown) {
    super('the body of a put failed');
  }
}

/** Returns the non-empty pieces of a body that stay unchanged until the put is settled; null for a stream. */
export function stablePieces(body: PutBody): readonly Uint8Array[] | null {
  if (body instanceof Uint8Array) return joined([body]);
  return Symbol.asyncIterator in body ? null : joined(body);
}

/** Joins pieces that are adjacent in memory. */
function joined(pieces: readonly Uint8Array[]): Uint8Array[] {
  const runs: Uint8Array[] = [];
  for (const piece of pieces) {
    const last = runs.at(-1);
    if (last?.buffer === piece.buffer && last.byteOffset + last.length === piece.byteOffset) {
      runs[runs.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + piece.length);
    } else if (piece.length > 0) {
      runs.push(piece);
    }
  }
  return runs;
}

/** Streams the body as non-empty pieces; errors of its iterator arrive as `BodyError`. */
export async function* bodyPieces(body: PutBody): AsyncGenerator<Uint8Array> {
  if (Symbol.asyncIterator in body) yield* streamPieces(body);
  else yield* stablePieces(body) ?? [];
}

async function* streamPieces(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  let finished = false;
  try {
    for (;;) {
      const next = await iterator.next().catch((error: unknown) => {
        finished = true;
        throw new BodyError(error);
      });
      if (next.done) {
        finished = true;
        return;
      }
      if (next.value.length > 0) yield next.value;
    }
  } finally {
    // After a failure of the store the producer frees its resources; an error in that is ignored.
    if (!finished) await iterator.return?.().catch(() => undefined);
  }
}

/** @throws ObjectStoreError `invalid_argument` when the body exceeds the limit of create-only puts */
export async function wholeBody(key: string, body: PutBody): Promise<Uint8Array> {
  if (body instanceof Uint8Array && body.length <= CREATE_ONLY_MAX_BYTES) return body;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of bodyPieces(body)) {
    bytes += piece.length;
    if (bytes > CREATE_ONLY_MAX_BYTES) {
      throw new ObjectStoreError(
        'invalid_argument',
        `a create-only put of ${key} may have at most ${CREATE_ONLY_MAX_BYTES} bytes`,
      );
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces, bytes);
}
