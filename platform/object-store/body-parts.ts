import { bodyPieces } from './body.js';
import type { PutBody } from './port.js';

/** Some bytes of a body that stay as they are until they are given back. */
export interface BodyPart {
  bytes: Uint8Array;
  /** The bytes are of no use any more: another part may have their memory. */
  release(): void;
}

/**
 * The body cut into parts: each but the last has exactly `partBytes(index)` bytes, in one piece. An empty body gives no part.
 * Parts of a stream are copies, as its producer may use its own memory again, and so are those of many pieces, which may lie in
 * memory that is freed while a broken connection still holds on to it; the memory of released ones is used again, because fresh
 * pages from the system cost more than the copying. Whole bytes in one piece are not copied.
 */
export async function* bodyParts(
  body: PutBody,
  partBytes: (index: number) => number,
): AsyncGenerator<BodyPart> {
  if (body instanceof Uint8Array) {
    yield* slicesOf(body, partBytes);
    return;
  }
  const free: Buffer[] = [];
  const take = (size: number) => {
    const known = free.findIndex(({ length }) => length === size);
    return free.splice(known, known < 0 ? 0 : 1)[0] ?? Buffer.allocUnsafeSlow(size);
  };
  let memory: Buffer | null = null;
  let held = 0;
  let index = 0;
  const cut = (whole: Buffer): BodyPart => {
    const bytes = whole.subarray(0, held);
    memory = null;
    held = 0;
    index += 1;
    return { bytes, release: () => void free.push(whole) };
  };
  for await (const piece of bodyPieces(body)) {
    for (let offset = 0; offset < piece.length; ) {
      memory ??= take(partBytes(index));
      const taken = piece.subarray(offset, offset + memory.length - held);
      memory.set(taken, held);
      held += taken.length;
      offset += taken.length;
      if (held === memory.length) yield cut(memory);
    }
  }
  if (memory) yield cut(memory);
}

function* slicesOf(body: Uint8Array, partBytes: (index: number) => number): Generator<BodyPart> {
  let index = 0;
  for (let begin = 0; begin < body.length; index += 1) {
    const end = begin + partBytes(index);
    yield { bytes: body.subarray(begin, end), release: () => undefined };
    begin = end;
  }
}
