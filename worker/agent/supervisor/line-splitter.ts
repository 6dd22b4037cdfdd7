import { StringDecoder } from 'node:string_decoder';

/**
 * Maximum stored length of a line; the rest is skipped. It exceeds the length of a log line, so that a secret at the
 * cut is still redacted.
 */
const MAX_PENDING = 8_192;

/**
 * Splits a byte stream into lines, in bounded memory. A carriage return ends a line as well, because progress bars
 * redraw themselves with it.
 */
export class LineSplitter {
  private readonly decoder = new StringDecoder('utf8');
  private pending = '';
  private overlong = false;

  constructor(private readonly onLine: (text: string, truncated: boolean) => void) {}

  push(chunk: Buffer): void {
    this.take(this.decoder.write(chunk));
  }

  /** Ends the stream; text without a line end is a line as well. */
  end(): void {
    this.take(this.decoder.end());
    if (this.pending !== '') this.emit();
  }

  private take(text: string): void {
    const lines = text.split(/\r\n|[\r\n]/);
    for (const [i, part] of lines.entries()) {
      this.append(part);
      // Skips empty lines, such as a CR LF split across two chunks.
      if (i < lines.length - 1 && this.pending !== '') this.emit();
    }
  }

  private append(part: string): void {
    const room = MAX_PENDING - this.pending.length;
    this.overlong ||= part.length > room;
    this.pending += part.slice(0, room);
  }

  private emit(): void {
    const { pending, overlong } = this;
    this.pending = '';
    this.overlong = false;
    this.onLine(pending, overlong);
  }
}
