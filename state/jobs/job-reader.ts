/**
 * Reads jobs through a cache. Reading a record, completing its document and encoding the answer take most of the time
 * of a request for a job, and most requests repeat a previous read. The cache keeps each job with a tag of its whole
 * record, which Redis compares on every read. So no result is older than the beginning of its read.
 */
import { frozen } from '../../contracts/frozen.js';
import type { Job } from '../../contracts/index.js';
import type { CommandRunner } from '../core/command-runner.js';
import { fromRecord, type RecordReply } from './record.js';

/** Bytes of the cached records' text; a parsed job takes a few times as much. */
const KEPT_BYTES = 8 * 1024 * 1024;
/** Jobs that one command reads; Redis blocks other clients meanwhile. */
const BATCH = 128;

interface Kept {
  tag: string;
  job: Job;
  bytes: number;
}

/** Reply of get_jobs.lua for one job. */
type Reply = [] | [tag: string] | [tag: string, ...record: RecordReply];

interface Waiting {
  resolve(job: Job | null): void;
  reject(error: unknown): void;
}

export class JobReader {
  /** Ordered by use, the most recent last. */
  private readonly kept = new Map<string, Kept>();
  private bytes = 0;
  private asked = new Map<string, Waiting[]>();

  constructor(
    private readonly commands: CommandRunner,
    private readonly keptBytes = KEPT_BYTES,
  ) {}

  /**
   * Returns the current job, frozen; the same object as before while nothing has changed. Null when it does not exist.
   * @throws ZerofleetError `job_store_unavailable`
   */
  read(id: string): Promise<Job | null> {
    return new Promise((resolve, reject) => {
      // Reads in the same turn of the event loop share one command.
      if (this.asked.size === 0) setImmediate(() => this.send());
      const waiting = this.asked.get(id) ?? [];
      this.asked.set(id, waiting);
      waiting.push({ resolve, reject });
    });
  }

  private send(): void {
    const asked = [...this.asked];
    this.asked = new Map();
    for (let at = 0; at < asked.length; at += BATCH) void this.answer(asked.slice(at, at + BATCH));
  }

  private async answer(asked: readonly [id: string, Waiting[]][]): Promise<void> {
    // Copied here because other reads may evict the entries meanwhile.
    const before = asked.map(([id]) => this.kept.get(id));
    const call = { ids: asked.map(([id]) => id), known: before.map((kept) => kept?.tag ?? '') };
    const replies = await this.commands.run('get_jobs', call).catch((error: unknown) => {
      for (const { reject } of asked.flatMap(([, waiting]) => waiting)) reject(error);
    });
    if (!replies) return;
    asked.forEach(([id, waiting], i) => {
      try {
        const job = this.take(id, replies[i] as Reply, before[i]);
        for (const { resolve } of waiting) resolve(job);
      } catch (error) {
        // An unreadable record fails only its own readers.
        for (const { reject } of waiting) reject(error);
      }
    });
  }

  private take(id: string, [tag, ...record]: Reply, before: Kept | undefined): Job | null {
    if (tag === undefined) {
      this.forget(id);
      return null;
    }
    if (before?.tag === tag) {
      this.keep(id, before);
      return before.job;
    }
    const [flat, history] = record as RecordReply;
    const job = frozen(fromRecord([flat, history]) as Job);
    const bytes = [...flat, ...history].reduce((sum, text) => sum + text.length, 0);
    this.keep(id, { tag, job, bytes });
    return job;
  }

  private keep(id: string, kept: Kept): void {
    this.forget(id);
    this.kept.set(id, kept);
    this.bytes += kept.bytes;
    for (const oldest of this.kept.keys()) {
      if (this.bytes <= this.keptBytes) break;
      this.forget(oldest);
    }
  }

  private forget(id: string): void {
    this.bytes -= this.kept.get(id)?.bytes ?? 0;
    this.kept.delete(id);
  }
}
