import type { JobExecution, LogInput } from '../../platform/job-store/port.js';
import type { Logger } from '../../platform/logging.js';
import { droppedLine, type LogLine, workerLine } from '../supervisor/log-line.js';
import type { Lease } from './lease.js';

export interface LogReporterOptions {
  store: Pick<JobExecution, 'appendLogs'>;
  lease: Lease;
  interval_ms: number;
  log: Logger;
}

/** Lines of one write. */
const MAX_BATCH = 500;
/** Lines that wait while the job store does not answer; what comes beyond them is counted and dropped. */
const MAX_WAITING = 2_000;

/**
 * Gathers the lines of a job's log and writes them in batches, one at a time, at most once in `interval_ms` while lines come
 * slowly. A batch that is written twice counts once, because it keeps its number.
 */
export class LogReporter {
  private readonly waiting: LogInput[] = [];
  /** Lines that found no room, by rank. */
  private readonly dropped = new Map<number | null, number>();
  private readonly timer: NodeJS.Timeout;
  private batch = 0;
  private writing: Promise<void> | null = null;

  constructor(private readonly options: LogReporterOptions) {
    this.timer = setInterval(() => this.start(), options.interval_ms);
  }

  /** A line of one rank; null: of the job as a whole. */
  line(rank: number | null, line: LogLine): void {
    if (this.waiting.length >= MAX_WAITING) {
      this.dropped.set(rank, (this.dropped.get(rank) ?? 0) + Math.max(1, line.dropped));
      return;
    }
    this.waiting.push({ rank, ...line });
    if (this.waiting.length === MAX_BATCH) this.start();
  }

  /** What this worker has to say about the job, in one line: messages of errors may have more. */
  say(message: string): void {
    this.line(null, workerLine(message.split('\n', 1)[0] ?? ''));
  }

  /** Writes everything that waits. Returns early, without an error, when the lease is lost. */
  async flush(): Promise<void> {
    while (this.waiting.length > 0 && !this.options.lease.lost.aborted) await this.start();
    await this.writing;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.flush();
  }

  private start(): Promise<void> {
    this.writing ??= this.writeBatch().finally(() => {
      this.writing = null;
    });
    return this.writing;
  }

  private async writeBatch(): Promise<void> {
    const { store, lease, log } = this.options;
    const lines = this.waiting.slice(0, MAX_BATCH);
    if (lines.length === 0) return;
    const batch = this.batch + 1;
    try {
      await lease.call((jobId, epoch) => store.appendLogs(jobId, epoch, lines, { batch }));
    } catch (error) {
      // A log that can't be written must not stop a training.
      if (!lease.lost.aborted) log.error({ err: error, batch }, 'log lines refused');
    }
    this.batch = batch;
    this.waiting.splice(0, lines.length);
    this.tellDropped();
  }

  private tellDropped(): void {
    const why = 'the job store did not answer';
    for (const [rank, count] of this.dropped) this.waiting.push({ rank, ...droppedLine(count, why) });
    this.dropped.clear();
  }
}
