import { padded } from '../../../contracts/token-file.js';
import type { Spool } from './spool.js';

/**
 * Loss mask of a token file: one bit per token, the lowest bit of a byte first. Positions may exceed 2^31, where 32-bit
 * shifts give wrong results.
 */
export class MaskSpool {
  private count = 0;
  /** Bits of the last, partial byte. */
  private bits = 0;

  constructor(private readonly spool: Pick<Spool, 'push' | 'pushByte' | 'readAt' | 'read' | 'close'>) {}

  /** Appends bits. @param counts 1 for each token that counts as a target; null: all of them */
  push(count: number, counts: Uint8Array | null): void {
    const begin = this.count;
    const end = begin + count;
    if (counts === null) {
      this.pushBits(Math.min(end, padded(begin)), () => 1);
      const bytes = Math.floor((end - this.count) / 8);
      this.spool.push(new Uint8Array(bytes).fill(255));
      this.count += 8 * bytes;
    }
    this.pushBits(end, (position) => (counts === null || counts[position - begin] !== 0 ? 1 : 0));
  }

  /** Returns the bits of `count` tokens from `begin` on, which must have been pushed. */
  read(begin: number, count: number): Uint8Array {
    const first = Math.floor(begin / 8);
    const end = Math.min(Math.ceil((begin + count) / 8), Math.floor(this.count / 8));
    const bytes = this.spool.readAt(first, Math.max(0, end - first));
    const bitAt = (position: number) =>
      (bytes[Math.floor(position / 8) - first] ?? this.bits) >> (position % 8);
    return Uint8Array.from({ length: count }, (_, i) => bitAt(begin + i) & 1);
  }

  /** Returns the whole mask; no more tokens may be pushed. */
  *finish(): Generator<Uint8Array> {
    if (this.count % 8 > 0) this.spool.pushByte(this.bits);
    yield* this.spool.read();
  }

  close(): void {
    this.spool.close();
  }

  private pushBits(end: number, bitOf: (position: number) => number): void {
    for (; this.count < end; this.count++) {
      this.bits |= bitOf(this.count) << (this.count % 8);
      if (this.count % 8 !== 7) continue;
      this.spool.pushByte(this.bits);
      this.bits = 0;
    }
  }
}
