import { StringDecoder } from 'node:string_decoder';

/** A line goes on for longer: the rest of it is passed over. More than a line keeps, so that a secret at the cut is still seen. */
const MAX_PENDING = 8_192;

/** Lines of a stream of bytes, in bounded memory. A carriage return ends a line too: progress bars draw themselves anew with it. */
export class LineSplitter {
  private readonly decoder = new StringDecoder('utf8');
  private pending = '';
  private overlong = false;

  constructor(private readonly onLine: (text: string, truncated: boolean) => void) {}

  push(chunk: Buffer): void {
    this.take(this.decoder.write(chunk));
  }

  /** What stands without an end of line is a line as well. */
  end(): void {
    this.take(this.decoder.end());
    if (this.pending !== '') this.emit();
  }

  private take(text: string): void {
    const lines = text.split(/\r\n|[\r\n]/);
    for (const [i, part] of lines.entries()) {
      this.append(part);
      // An end of line that comes in two chunks, or a line of nothing, is not worth a line.
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
