import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type ConnectionOptions, Worker } from 'bullmq';
import { type QueuePayload, queueName, REDIS_PREFIX, ZerofleetError } from '../../contracts/index.js';
import { waitOrAbort } from '../../platform/process/retry.js';
import { redisOptions } from '../../platform/redis/connect.js';
import { within } from '../shared/within.js';
import { Announcer } from './announcer.js';
import type { AgentDeps } from './attempt/context.js';
import { watchWorlds } from './attempt/world-links.js';
import type { Members } from './link/members.js';
import type { PreemptionNotice } from './preemption/source.js';
import { Processor } from './processor.js';
import { ExportServer } from './requests/export-server.js';
import { SampleServer } from './requests/sample-server.js';

interface AgentOptions extends AgentDeps {
  redis_url: string;
  pool: string;
}

/**
 * The crash of a worker is no error of the job, and BullMQ never resets its stall count, so stalls must never fail a
 * job. The attempt counts the errors of the job itself.
 */
const UNLIMITED_STALLS = 1_000_000_000;
/** BullMQ waits for Redis before it closes. An unavailable Redis must not keep the agent alive. */
const MAX_CLOSE_MS = 5_000;
const MAX_DISCONNECT_MS = 1_000;
/** Time kept for the last writes before the machine goes away. */
const FINAL_WRITES_MS = 3_000;

/**
 * Worker agent of one machine: takes attempts from its queue and runs their ranks as child processes. Its event loop
 * only supervises; child processes do all computation and bulk I/O.
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
        // Each running job occupies an entry, and a preempted job may still be shutting down.
        concurrency: 2 * options.slots + 1,
        lockDuration: timing.lease_ms,
        stalledInterval: timing.stalled_interval_ms,
        maxStalledCount: UNLIMITED_STALLS,
      },
    );
    this.worker.on('error', (error) => log.warn({ err: error }, 'queue'));
    this.samples = new SampleServer(options, () => this.announcer.refresh());
    this.announcer = new Announcer({ ...options, modelBytes: () => this.samples.modelBytes }, this.id);
    for (const gpus of [options.gpus, options.answer_gpus]) gpus?.onChange(() => this.announcer.refresh());
    options.processes.onChange(() => this.announcer.refresh());
    this.exports = new ExportServer(options);
    this.members = watchWorlds(options, this.id);
  }

  /** Resolves when the agent takes queue entries. */
  async ready(): Promise<void> {
    const { announcer, worker, samples, exports } = this;
    await Promise.all([announcer.announced, worker.waitUntilReady(), samples.ready(), exports.ready()]);
  }

  /**
   * Drains the agent, as for a preemption or a deployment: takes no new work, lets every job save and returns it to the
   * queue. Jobs that cannot save in time are abandoned and resume elsewhere from their last checkpoint. Idempotent.
   */
  close(notice: PreemptionNotice | null = null): Promise<void> {
    this.closed ??= this.drainAndClose(notice);
    return this.closed;
  }

  private async drainAndClose(notice: PreemptionNotice | null): Promise<void> {
    const { drain, timing } = this.options;
    const draining = 'the worker reached its drain deadline';
    drain.begin(notice);
    const { leftMs } = drain;
    const graceMs = leftMs === null ? timing.drain_ms : Math.max(FINAL_WRITES_MS, leftMs - FINAL_WRITES_MS);
    this.announcer.drain();
    const membersLeft = this.members.leave();
    const closing = [this.worker, this.samples, this.exports].map((part) => part.close());
    const closed = Promise.all([membersLeft, ...closing]).catch((error: unknown) => {
      this.options.log.warn({ err: error }, 'queue did not close cleanly');
    });
    this.processor.drain();
    const deadline = setTimeout(() => {
      this.processor.abandon(new ZerofleetError('worker_draining', draining));
      void this.members.close(draining);
    }, graceMs);
    const finished = new AbortController();
    const force = waitOrAbort(graceMs + MAX_CLOSE_MS, finished.signal).then(() => {
      this.processor.disconnected();
      const disconnects = [this.worker, this.samples, this.exports].map((part) => part.disconnect());
      return within(MAX_DISCONNECT_MS, Promise.all(disconnects));
    });
    await Promise.race([closed, force]);
    finished.abort();
    clearTimeout(deadline);
    await this.announcer.close();
  }
}
