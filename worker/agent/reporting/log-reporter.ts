import type { Logger } from '../../../platform/logging/logging.js';
import type { JobExecution, LogInput } from '../../../state/index.js';
import type { Lease } from '../lease/lease.js';
import { droppedLine, type LogLine, workerLine } from '../supervisor/log-line.js';
import { BatchWriter } from './batch-writer.js';

interface LogReporterOptions {
  store: Pick<JobExecution, 'appendLogs'>;
  lease: Lease;
  interval_ms: number;
  log: Logger;
}

/** Lines of one write. */
const MAX_BATCH = 500;
/** Maximum number of pending lines while the job store does not answer; further ones are counted and dropped. */
const MAX_PENDING = 2_000;

/** Collects the lines of a job's log and writes them in batches. */
export class LogReporter {
  private readonly lines: BatchWriter<LogInput>;
  /** Number of dropped lines by rank. */
  private readonly dropped = new Map<number | null, number>();

  constructor({ store, lease, interval_ms, log }: LogReporterOptions) {
    this.lines = new BatchWriter({
      lease,
      interval_ms,
      max_batch: MAX_BATCH,
      write: (lines, batch) =>
        lease.call((jobId, execution) => store.appendLogs(jobId, execution, lines, { batch })),
      refused_message: 'log lines refused',
      onDone: () => this.reportDropped(),
      log,
    });
  }

  /** Adds a line of one rank; null: of the job. */
  line(rank: number | null, line: LogLine): void {
    if (this.lines.numPending >= MAX_PENDING) {
      this.dropped.set(rank, (this.dropped.get(rank) ?? 0) + Math.max(1, line.dropped));
      return;
    }
    this.lines.add({ rank, ...line });
  }

  /** Adds a message of this worker about the job: its first line, because error messages may have several. */
  message(text: string): void {
    this.line(null, workerLine(text.split('\n', 1)[0] ?? ''));
  }

  /** Writes all pending lines. Returns early, without an error, when the lease is lost. */
  flush(): Promise<void> {
    return this.lines.flush();
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.lines.close();
  }

  private reportDropped(): void {
    const why = 'the job store did not answer';
    for (const [rank, count] of this.dropped) this.lines.add({ rank, ...droppedLine(count, why) });
    this.dropped.clear();
  }
}
