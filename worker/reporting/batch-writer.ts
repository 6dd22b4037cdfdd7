import type { Logger } from '../../platform/logging/logging.js';
import type { Lease } from '../lease/lease.js';

export interface BatchWriterOptions<Entry> {
  lease: Lease;
  interval_ms: number;
  /** Entries of one write; so many that wait are written at once. */
  most: number;
  /** Writes them. A batch that is written twice counts once, because it keeps its number. */
  write(entries: readonly Entry[], batch: number): Promise<unknown>;
  /** Of one that was refused, what is said in the log. */
  refused: string;
  /** A batch is over: written, or given up. */
  onOver?(): void;
  log: Logger;
}

/** Gathers what an attempt reports and writes it in batches, one at a time, at most once in `interval_ms` while it comes slowly. */
export class BatchWriter<Entry> {
  private readonly waiting: Entry[] = [];
  private readonly timer: NodeJS.Timeout;
  private batch = 0;
  private writing: Promise<void> | null = null;

  constructor(private readonly options: BatchWriterOptions<Entry>) {
    this.timer = setInterval(() => this.start(), options.interval_ms);
  }

  get numWaiting(): number {
    return this.waiting.length;
  }

  add(entry: Entry): void {
    this.waiting.push(entry);
    if (this.waiting.length >= this.options.most) this.start();
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
    const { most, write, refused, onOver, lease, log } = this.options;
    const entries = this.waiting.slice(0, most);
    if (entries.length === 0) return;
    const batch = this.batch + 1;
    try {
      await write(entries, batch);
    } catch (error) {
      // Lost lease: the next worker reports what it repeats. Anything else must not stop a training.
      if (!lease.lost.aborted) log.error({ err: error, batch }, refused);
    }
    this.batch = batch;
    this.waiting.splice(0, entries.length);
    onOver?.();
  }
}
