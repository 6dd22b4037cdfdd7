/** Reads a body in pieces of wanted sizes. */
export class ByteReader {
  private readonly pieces: AsyncIterator<Uint8Array>;
  private rest: Uint8Array = new Uint8Array(0);

  /** @param truncated makes the error of a body that ends too early */
  constructor(
    body: AsyncIterable<Uint8Array>,
    private readonly truncated: () => Error,
  ) {
    this.pieces = body[Symbol.asyncIterator]();
  }

  async hasEnded(): Promise<boolean> {
    while (this.rest.length === 0) {
      const next = await this.pieces.next();
      if (next.done) return true;
      this.rest = next.value;
    }
    return false;
  }

  /** Returns the next bytes, as many as wanted; they may share memory with the body. */
  async take(count: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let missing = count;
    for (; missing > this.rest.length; await this.more()) {
      parts.push(this.rest);
      missing -= this.rest.length;
      this.rest = new Uint8Array(0);
    }
    const last = this.rest.subarray(0, missing);
    this.rest = this.rest.subarray(missing);
    return parts.length === 0 ? last : Buffer.concat([...parts, last]);
  }

  async skip(count: number): Promise<void> {
    let missing = count;
    for (; missing > this.rest.length; await this.more()) {
      missing -= this.rest.length;
      this.rest = new Uint8Array(0);
    }
    this.rest = this.rest.subarray(missing);
  }

  private async more(): Promise<void> {
    if (await this.hasEnded()) throw this.truncated();
  }
}
