import type { Logger } from '../../platform/logging/logging.js';
import type { JobExecution, LogInput } from '../../state/index.js';
import type { Lease } from '../lease/lease.js';
import { droppedLine, type LogLine, workerLine } from '../supervisor/log-line.js';
import { BatchWriter } from './batch-writer.js';

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

/** Gathers the lines of a job's log and writes them in batches. */
export class LogReporter {
  private readonly lines: BatchWriter<LogInput>;
  /** Lines that found no room, by rank. */
  private readonly dropped = new Map<number | null, number>();

  constructor({ store, lease, interval_ms, log }: LogReporterOptions) {
    this.lines = new BatchWriter({
      lease,
      interval_ms,
      most: MAX_BATCH,
      write: (lines, batch) =>
        lease.call((jobId, execution) => store.appendLogs(jobId, execution, lines, { batch })),
      refused: 'log lines refused',
      onOver: () => this.tellDropped(),
      log,
    });
  }

  /** A line of one rank; null: of the job as a whole. */
  line(rank: number | null, line: LogLine): void {
    if (this.lines.numWaiting >= MAX_WAITING) {
      this.dropped.set(rank, (this.dropped.get(rank) ?? 0) + Math.max(1, line.dropped));
      return;
    }
    this.lines.add({ rank, ...line });
  }

  /** What this worker has to say about the job, in one line: messages of errors may have more. */
  say(message: string): void {
    this.line(null, workerLine(message.split('\n', 1)[0] ?? ''));
  }

  /** Writes everything that waits. Returns early, without an error, when the lease is lost. */
  flush(): Promise<void> {
    return this.lines.flush();
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.lines.close();
  }

  private tellDropped(): void {
    const why = 'the job store did not answer';
    for (const [rank, count] of this.dropped) this.lines.add({ rank, ...droppedLine(count, why) });
    this.dropped.clear();
  }
}
