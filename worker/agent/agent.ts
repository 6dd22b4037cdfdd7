import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type ConnectionOptions, Worker } from 'bullmq';
import { type QueuePayload, queueName, REDIS_PREFIX, ZerofleetError } from '../../contracts/index.js';
import { waitOrAbort } from '../../platform/process/retry.js';
import { redisOptions } from '../../platform/redis/connect.js';
import type { AgentDeps } from '../attempt/context.js';
import { watchWorlds } from '../attempt/world-links.js';
import { within } from '../common/within.js';
import type { Members } from '../link/members.js';
import type { PreemptionNotice } from '../preemption/source.js';
import { Announcer } from './announcer.js';
import { ExportServer } from './export-server.js';
import { Processor } from './processor.js';
import { SampleServer } from './sample-server.js';

export interface AgentOptions extends AgentDeps {
  redis_url: string;
  pool: string;
}

/**
 * A crash of a worker says nothing about the job, and BullMQ's count of stalls never goes back: so it must never be what
 * fails a job. Errors of the job itself are counted by the attempt.
 */
const UNLIMITED_STALLS = 1_000_000_000;
/** BullMQ waits for Redis before it closes; a Redis that is gone must not keep the agent alive. */
const MAX_CLOSE_MS = 5_000;
const MAX_DISCONNECT_MS = 1_000;
/** Before the machine is gone everything must be told. */
const LAST_WORDS_MS = 3_000;

/**
 * A worker machine: takes attempts from its queue and runs their ranks as child processes. Its event loop only
 * supervises; whatever computes or moves many bytes is done by children.
 */
export class Agent {
  readonly id = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  private readonly processor: Processor;
  private readonly worker: Worker<QueuePayload, void>;
  private readonly samples: SampleServer;
  private readonly announcer: Announcer;
  private readonly exports: ExportServer;
  private readonly members: Members;
  private closed: Promise<void> | null = null;

  constructor(private readonly options: AgentOptions) {
    const { timing, log } = options;
    this.processor = new Processor(options, this.id);
    this.worker = new Worker<QueuePayload, void>(
      queueName(this.id),
      (entry, token) => this.processor.process(entry, token),
      {
        connection: redisOptions(options.redis_url, 'queue') as ConnectionOptions,
        prefix: REDIS_PREFIX,
        // Each running job occupies an entry; a job that was preempted may still be leaving.
        concurrency: 2 * options.slots + 1,
        lockDuration: timing.lease_ms,
        stalledInterval: timing.stalled_interval_ms,
        maxStalledCount: UNLIMITED_STALLS,
      },
    );
    this.worker.on('error', (error) => log.warn({ err: error }, 'queue'));
    this.samples = new SampleServer(options);
    this.announcer = new Announcer(options, this.id);
    options.gpus?.onChange(() => this.announcer.refresh());
    options.processes.onChange(() => this.announcer.refresh());
    this.exports = new ExportServer(options);
    this.members = watchWorlds(options, this.id);
  }

  /** Resolves when entries are being taken. */
  async ready(): Promise<void> {
    const { announcer, worker, samples, exports } = this;
    await Promise.all([announcer.announced, worker.waitUntilReady(), samples.ready(), exports.ready()]);
  }

  /**
   * Ends the agent as a preemption or a deployment would: takes nothing new, lets every job save and hands it back to the
   * queue. Jobs that can't save in time are abandoned and go on from their last checkpoint elsewhere. Idempotent.
   */
  close(notice: PreemptionNotice | null = null): Promise<void> {
    this.closed ??= this.drainAndClose(notice);
    return this.closed;
  }

  private async drainAndClose(notice: PreemptionNotice | null): Promise<void> {
    const { departure, timing } = this.options;
    const draining = 'the worker could not wait any longer';
    departure.begin(notice);
    const { left_ms } = departure;
    const patience_ms = left_ms === null ? timing.drain_ms : Math.max(LAST_WORDS_MS, left_ms - LAST_WORDS_MS);
    this.announcer.drain();
    const left = this.members.leave();
    const closing = [this.worker, this.samples, this.exports].map((part) => part.close());
    const closed = Promise.all([left, ...closing]).catch((error: unknown) => {
      this.options.log.warn({ err: error }, 'queue not closed in order');
    });
    this.processor.drain();
    const late = setTimeout(() => {
      this.processor.abandon(new ZerofleetError('worker_draining', draining));
      void this.members.close(draining);
    }, patience_ms);
    const gone = new AbortController();
    const force = waitOrAbort(patience_ms + MAX_CLOSE_MS, gone.signal).then(() => {
      this.processor.disconnected();
      const parting = [this.worker, this.samples, this.exports].map((part) => part.disconnect());
      return within(MAX_DISCONNECT_MS, Promise.all(parting));
    });
    await Promise.race([closed, force]);
    gone.abort();
    clearTimeout(late);
    await this.announcer.close();
  }
}
