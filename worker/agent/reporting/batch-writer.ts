import type { Logger } from '../../../platform/logging/logging.js';
import type { Lease } from '../lease/lease.js';

interface BatchWriterOptions<Entry> {
  lease: Lease;
  interval_ms: number;
  /** Maximum number of entries of one write; as many pending entries are written at once. */
  max_batch: number;
  /** Writes a batch. A batch that is written twice counts once, because it keeps its number. */
  write(entries: readonly Entry[], batch: number): Promise<unknown>;
  /** Log message of a refused batch. */
  refused_message: string;
  /** Called when a batch was written or given up. */
  onDone?(): void;
  log: Logger;
}

/**
 * Collects the reports of an attempt and writes them in batches, one at a time, at most once per `interval_ms` unless a
 * batch is full.
 */
export class BatchWriter<Entry> {
  private readonly pending: Entry[] = [];
  private readonly timer: NodeJS.Timeout;
  private numAdded = 0;
  private batch = 0;
  private writing: Promise<void> | null = null;

  constructor(private readonly options: BatchWriterOptions<Entry>) {
    this.timer = setInterval(() => this.start(), options.interval_ms);
  }

  get numPending(): number {
    return this.pending.length;
  }

  add(entry: Entry): void {
    this.pending.push(entry);
    this.numAdded += 1;
    if (this.pending.length >= this.options.max_batch) this.start();
  }

  /** Writes all pending entries. Returns early, without an error, when the lease is lost. */
  async flush(): Promise<void> {
    while (this.pending.length > 0 && !this.options.lease.lost.aborted) await this.start();
    await this.writing;
  }

  /** As `flush`, without the entries that are added meanwhile. */
  async flushPresent(): Promise<void> {
    const last = this.numAdded;
    while (this.numAdded - this.pending.length < last && !this.options.lease.lost.aborted) await this.start();
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
    const { max_batch, write, refused_message, onDone, lease, log } = this.options;
    const entries = this.pending.slice(0, max_batch);
    if (entries.length === 0) return;
    const batch = this.batch + 1;
    try {
      await write(entries, batch);
    } catch (error) {
      // After a lost lease the next worker reports the repeated steps. Other errors must not stop the training.
      if (!lease.lost.aborted) log.error({ err: error, batch }, refused_message);
    }
    this.batch = batch;
    this.pending.splice(0, entries.length);
    onDone?.();
  }
}
