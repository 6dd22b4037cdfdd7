import { bodyPieces } from './body.js';
import type { PutBody } from './port.js';

/** Bytes of a body that stay unchanged until they are released. */
export interface BodyPart {
  bytes: Uint8Array;
  /** Releases the bytes, whose memory another part may reuse. */
  release(): void;
}

/**
 * Splits the body into parts: each but the last has exactly `partBytes` bytes, in one piece. An empty body
 * gives no part. Parts of a stream are copies, because its producer may reuse its memory. The memory of
 * released parts is reused, because fresh pages from the system cost more than the copying. Whole bytes are
 * copied only where a part spans several pieces.
 */
export async function* bodyParts(body: PutBody, partBytes: number): AsyncGenerator<BodyPart> {
  const isStable = !(Symbol.asyncIterator in body);
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
      if (isStable && memory === null && (piece.length - offset >= partBytes || body instanceof Uint8Array)) {
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
