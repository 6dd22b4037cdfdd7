import type { Readable } from 'node:stream';
import { plainText } from '../../contracts/index.js';
import { redactorOf } from '../../platform/logging/redact.js';
import { LineBudget, PER_SECOND } from './line-budget.js';
import { LineSplitter } from './line-splitter.js';
import { cutLine, droppedLine, type LogLine } from './log-line.js';

/** Lines that are kept to explain a rank's death, whatever became of them otherwise. */
const KEPT_LINES = 20;
/** How long after the first line that was dropped the number of them is told. */
const TELL_DROPPED_MS = 1_000;

/**
 * What a rank process writes, as lines: cut, without control characters and secrets, no more of them than its budget allows.
 * Whoever writes is not trusted, as a library or a text of the data may be what is printed.
 */
export class RankOutput {
  /** As they came: what is dropped costs little more than its splitting. */
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
    // The end of the process tells what happened.
    source.on('error', () => undefined);
  }

  /** Nothing more comes. */
  close(): void {
    this.tellDropped();
  }

  private take(stream: 'stdout' | 'stderr', text: string, truncated: boolean): void {
    this.last.push({ text, truncated });
    if (this.last.length > KEPT_LINES) this.last.shift();
    if (!this.budget.take()) {
      this.drop();
      return;
    }
    this.tellDropped();
    this.onLine(this.clean(stream, text, truncated));
  }

  private clean(stream: 'stdout' | 'stderr', text: string, truncated: boolean): LogLine {
    return cutLine(stream, this.redact(plainText(text)), truncated);
  }

  private drop(): void {
    this.dropped += 1;
    this.timer ??= setTimeout(() => this.tellDropped(), TELL_DROPPED_MS);
  }

  private tellDropped(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.dropped === 0) return;
    this.onLine(droppedLine(this.dropped, `a rank may write ${PER_SECOND} lines a second`));
    this.dropped = 0;
  }
}
