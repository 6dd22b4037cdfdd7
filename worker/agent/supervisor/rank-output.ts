import type { Readable } from 'node:stream';
import { plainText } from '../../../contracts/index.js';
import { redactorOf } from '../../../platform/logging/redact.js';
import { LineBudget, PER_SECOND } from './line-budget.js';
import { LineSplitter } from './line-splitter.js';
import { cutLine, droppedLine, type LogLine } from './log-line.js';

/** Last lines that are kept to explain a rank's end, including dropped ones. */
const KEPT_LINES = 20;
/** Delay between the first dropped line and the report. */
const REPORT_DROPPED_MS = 1_000;

/**
 * Output of a rank process as lines: cut, without control characters and secrets, and limited in number. The output is
 * untrusted, because it may come from a library or from the training data.
 */
export class RankOutput {
  /** Raw lines: a dropped line costs little more than its splitting. */
  private readonly last: { text: string; truncated: boolean }[] = [];
  private readonly redact = redactorOf(process.env);
  private dropped = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly onLine: (line: LogLine) => void,
    private readonly budget = new LineBudget(),
  ) {}

  /** The last lines, oldest first. */
  get tail(): string[] {
    return this.last.map(({ text, truncated }) => this.clean('stderr', text, truncated).message);
  }

  read(source: Readable | null, stream: 'stdout' | 'stderr'): void {
    if (!source) return;
    const splitter = new LineSplitter((text, truncated) => this.take(stream, text, truncated));
    source.on('data', (chunk: Buffer) => splitter.push(chunk));
    source.on('end', () => splitter.end());
    // The end of the process explains an error of the stream.
    source.on('error', () => undefined);
  }

  /** Ends the output. */
  close(): void {
    this.reportDropped();
  }

  private take(stream: 'stdout' | 'stderr', text: string, truncated: boolean): void {
    this.last.push({ text, truncated });
    if (this.last.length > KEPT_LINES) this.last.shift();
    if (!this.budget.take()) {
      this.drop();
      return;
    }
    this.reportDropped();
    this.onLine(this.clean(stream, text, truncated));
  }

  private clean(stream: 'stdout' | 'stderr', text: string, truncated: boolean): LogLine {
    return cutLine(stream, this.redact(plainText(text)), truncated);
  }

  private drop(): void {
    this.dropped += 1;
    this.timer ??= setTimeout(() => this.reportDropped(), REPORT_DROPPED_MS);
  }

  private reportDropped(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.dropped === 0) return;
    this.onLine(droppedLine(this.dropped, `a rank may write ${PER_SECOND} lines a second`));
    this.dropped = 0;
  }
}
