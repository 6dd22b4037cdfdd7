import { bodyPieces } from './body.js';
import type { PutBody } from './port.js';

/** Some bytes of a body that stay as they are until they are given back. */
export interface BodyPart {
  bytes: Uint8Array;
  /** The bytes are of no use any more: another part may have their memory. */
  release(): void;
}

/**
 * The body cut into parts: each but the last has exactly `partBytes` bytes, in one piece. An empty body gives no part.
 * Parts of a stream are copies, as its producer may use its own memory again; the memory of released ones is used again, because fresh
 * pages from the system cost more than the copying. Whole bytes are copied only where several of their pieces make a part.
 */
export async function* bodyParts(body: PutBody, partBytes: number): AsyncGenerator<BodyPart> {
  const is_stable = !(Symbol.asyncIterator in body);
  const free: Buffer[] = [];
  let memory: Buffer | null = null;
  let held = 0;
  const cut = (whole: Buffer): BodyPart => {
    const bytes = whole.subarray(0, held);
    memory = null;
    held = 0;
    return { bytes, release: () => void free.push(whole) };
  };
  for await (const piece of bodyPieces(body)) {
    for (let offset = 0; offset < piece.length; ) {
      if (
        is_stable &&
        memory === null &&
        (piece.length - offset >= partBytes || body instanceof Uint8Array)
      ) {
        yield { bytes: piece.subarray(offset, offset + partBytes), release: () => undefined };
        offset += partBytes;
        continue;
      }
      memory ??= free.pop() ?? Buffer.allocUnsafeSlow(partBytes);
      const taken = piece.subarray(offset, offset + memory.length - held);
      memory.set(taken, held);
      held += taken.length;
      offset += taken.length;
      if (held === memory.length) yield cut(memory);
    }
  }
  if (memory) yield cut(memory);
}
