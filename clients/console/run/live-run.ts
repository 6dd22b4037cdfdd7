/** One run, live: what was read at first, then what its stream tells. */
import { batch, type Signal, signal } from '@preact/signals';
import { isFinal } from '../../../contracts/job-states.js';
import type { Attempt, Checkpoint, Job, JobEvent, JobMetric } from '../../../contracts/types.js';
import { collect } from '../../typescript/index.js';
import { client, type Fault, faultOf } from '../app/connection.js';
import { type CurvePoint, extended, extremesOf, pointOf } from './charts/curve.js';
import { persistently } from './persistently.js';

/** Points of the curve that are read at first. */
const FIRST_POINTS = 2_000;
/** Records are read again at most so often, whatever the stream tells. */
const REREAD_MS = 10_000;
/** Steps of a fast run are shown together. */
const GATHER_MS = 200;
const EVENTS_HELD = 1_000;

type Entry = JobEvent | JobMetric;
type Reread = 'job' | 'checkpoints' | 'attempts';

export class LiveRun {
  readonly job = signal<Job | null>(null);
  /** Null until they are read. */
  readonly points: Signal<readonly CurvePoint[] | null> = signal(null);
  /** Newest first; those before the stream only after `readEvents`. */
  readonly events: Signal<readonly JobEvent[]> = signal([]);
  /** Highest step first; null until they are read. */
  readonly checkpoints: Signal<readonly Checkpoint[] | null> = signal(null);
  /** Newest first; null until they are read. */
  readonly attempts: Signal<readonly Attempt[] | null> = signal(null);
  readonly isLive = signal(false);
  readonly fault = signal<Fault | null>(null);
  private readonly closing = new AbortController();
  private readonly waiting: Entry[] = [];
  private readonly wanted = new Set<Reread>();
  private gathering: ReturnType<typeof setTimeout> | undefined;
  private rereading: ReturnType<typeof setTimeout> | undefined;
  private readAt = Number.NEGATIVE_INFINITY;
  private seen = 0;
  private hasEvents = false;

  constructor(private readonly id: string) {}

  /** Reads and follows the run until it has ended or the view is closed; failures are shown and retried. */
  run(): Promise<void> {
    const work = async () => {
      const after = await this.readAll();
      this.fault.value = null;
      await this.follow(after);
    };
    return persistently(work, this.closing.signal, (error) => {
      this.isLive.value = false;
      this.fault.value = faultOf(error);
    });
  }

  close(): void {
    this.closing.abort();
    clearTimeout(this.gathering);
    clearTimeout(this.rereading);
  }

  /** Puts in what an action has answered. */
  set(job: Job): void {
    this.job.value = job;
  }

  /** Reads a record again, now or when it may be. */
  reread(part: Reread): void {
    this.wanted.add(part);
    if (this.rereading !== undefined) return;
    const pause = Math.max(0, this.readAt + REREAD_MS - performance.now());
    this.rereading = setTimeout(() => void this.rereadNext(), pause);
  }

  private async rereadNext(): Promise<void> {
    this.rereading = undefined;
    const [part] = this.wanted;
    if (part === undefined || this.closing.signal.aborted) return;
    this.wanted.delete(part);
    this.readAt = performance.now();
    try {
      if (part === 'job') this.job.value = await client.jobs.get(this.id, { signal: this.closing.signal });
      else if (part === 'attempts') this.attempts.value = await collect(client.jobs.attempts(this.id));
      else this.checkpoints.value = await collect(client.jobs.checkpoints(this.id));
    } catch {
      // A server that is gone shows in the stream; the read is repeated in the next interval.
      this.wanted.add(part);
    }
    const [next] = this.wanted;
    if (next !== undefined) this.reread(next);
  }

  /**
   * Reads the record, the attempts and the curve, and lets the rest follow. @returns position in the stream after which
   * nothing was read
   */
  private async readAll(): Promise<string | undefined> {
    const { id } = this;
    const job = await client.jobs.get(id, { signal: this.closing.signal });
    this.job.value = job;
    const [curve, attempts] = await Promise.all([
      client.jobs.curve(id, FIRST_POINTS, { names: extremesOf(job.spec) }),
      collect(client.jobs.attempts(id)),
    ]);
    this.attempts.value = attempts;
    this.points.value = curve.map(pointOf);
    this.reread('checkpoints');
    this.readAt = performance.now();
    const last = curve.at(-1);
    this.seen = last?.seq ?? 0;
    return last?.position;
  }

  /** Reads the events that came before those of the stream, once. @throws errors of the client */
  async readEvents(): Promise<void> {
    if (this.hasEvents) return;
    this.hasEvents = true;
    const read = await collect(client.jobs.events(this.id)).catch((error: unknown) => {
      this.hasEvents = false;
      throw error;
    });
    const known = new Set(this.events.value.map(({ seq }) => seq));
    const before = read.filter(({ seq }) => !known.has(seq)).reverse();
    this.events.value = [...this.events.value, ...before].slice(0, EVENTS_HELD);
  }

  private async follow(after: string | undefined): Promise<void> {
    const { signal: closed } = this.closing;
    const job = this.job.value;
    const options = {
      kinds: ['event', 'metric'] as ('event' | 'metric')[],
      signal: closed,
      ...(after && { after }),
    };
    this.isLive.value = job !== null && !isFinal(job.state);
    let last = 0;
    for await (const entry of client.jobs.follow(this.id, options)) {
      // Numbers that begin anew: the server lost its memory, and the entries that it has recovered follow.
      if (entry.seq < last) {
        this.seen = 0;
        this.events.value = [];
      }
      last = entry.seq;
      if (entry.kind === 'log' || entry.seq <= this.seen) continue;
      this.waiting.push(entry);
      this.gathering ??= setTimeout(() => this.take(), GATHER_MS);
    }
    this.take();
    if (this.isLive.value) await this.rereadAll();
    this.isLive.value = false;
  }

  /** Reads the records as the run has left them. */
  private async rereadAll(): Promise<void> {
    this.wanted.clear();
    const [job, checkpoints, attempts] = await Promise.all([
      client.jobs.get(this.id, { signal: this.closing.signal }),
      collect(client.jobs.checkpoints(this.id)),
      collect(client.jobs.attempts(this.id)),
    ]);
    batch(() => {
      this.job.value = job;
      this.checkpoints.value = checkpoints;
      this.attempts.value = attempts;
    });
  }

  private take(): void {
    clearTimeout(this.gathering);
    this.gathering = undefined;
    const entries = this.waiting.splice(0);
    const metrics = entries.filter((entry) => entry.kind === 'metric');
    const events = entries.filter((entry) => entry.kind === 'event');
    batch(() => {
      this.points.value = extended(this.points.value ?? [], metrics.map(pointOf));
      if (events.length > 0)
        this.events.value = [...events.toReversed(), ...this.events.value].slice(0, EVENTS_HELD);
      this.progress(metrics.at(-1));
      // Run time and cost are not in the stream.
      if (metrics.length > 0) this.reread('job');
      for (const { type, data } of events) this.change(type, data);
    });
  }

  /** Updates the record's progress from the newest step, so that the record need not be read. */
  private progress(metric: JobMetric | undefined): void {
    const job = this.job.value;
    if (metric === undefined || job === null) return;
    const { step, loss, tokens, tokens_per_second, world_size } = metric;
    const { total_steps } = job.progress;
    const percent = total_steps === null ? null : (100 * step) / total_steps;
    const etaSeconds = total_steps === null ? null : (total_steps - step) * metric.seconds.total;
    const progress = {
      ...job.progress,
      step,
      loss,
      tokens,
      tokens_per_second,
      percent,
      eta_seconds: etaSeconds,
    };
    this.job.value = { ...job, world_size, progress };
  }

  private change(type: string, data: JobEvent['data']): void {
    if (type.startsWith('checkpoint.')) this.reread('checkpoints');
    if (type === 'job.state' || type.endsWith('.resolved')) this.reread('job');
    if (type === 'job.state' || type === 'training.started') this.reread('attempts');
    const job = this.job.value;
    if (type === 'job.state' && job !== null)
      this.job.value = {
        ...job,
        state: data.to as Job['state'],
        reason: (data.reason as string | null) ?? null,
      };
  }
}
