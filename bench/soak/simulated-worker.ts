/**
 * A simulated worker: accesses the job store like an agent, with a queue and a lease, without training. It runs a
 * number of attempts and then leaves, properly or as if it was killed.
 */
import { type ConnectionOptions, Worker } from 'bullmq';
import { ulid } from 'ulid';
import type { Execution } from '../../contracts/execution.js';
import {
  type Checkpoint,
  type QueuePayload,
  queueName,
  REDIS_PREFIX,
  type ReportedProgress,
} from '../../contracts/index.js';
import { redisOptions } from '../../platform/redis/connect.js';
import type { JobStore, MetricInput } from '../../state/index.js';
import { testWorker } from '../../state/testing/workers.js';
import { deferred } from '../../worker/shared/deferred.js';

const LEASE_MS = 30_000;
/** Lease of a worker that is killed: its jobs are released after this time. */
const KILLED_LEASE_MS = 1_000;
const STEPS = 20;
const METRICS_AT_ONCE = 5;
const LOG_LINES = 10;
const SAVES = [10, 20];
const RETRY_DELAY_MS = 100;

interface SimulatedWorkerOptions {
  id: string;
  slots: number;
  /** Number of attempts until it leaves. */
  attempts: number;
  /** True if it disappears in the middle of its last attempt. */
  killed: boolean;
  store: JobStore;
  redis_url: string;
}

export class SimulatedWorker {
  /** Resolves when it has left. */
  readonly gone: Promise<void>;
  private readonly worker: Worker<QueuePayload, void>;
  private readonly leave: () => void;
  private taken = 0;
  private ended = 0;

  private constructor(private readonly options: SimulatedWorkerOptions) {
    const { id, slots, redis_url } = options;
    const leaving = deferred<void>();
    this.leave = () => leaving.resolve();
    this.worker = new Worker<QueuePayload, void>(queueName(id), ({ data }) => this.take(data), {
      connection: redisOptions(redis_url, 'queue') as ConnectionOptions,
      prefix: REDIS_PREFIX,
      concurrency: 2 * slots + 1,
      lockDuration: LEASE_MS,
    });
    this.worker.on('error', (error) => process.stderr.write(`${id}: ${error.message}\n`));
    const announcing = setInterval(() => void this.announce(LEASE_MS), LEASE_MS / 3);
    this.gone = leaving.promise.then(async () => {
      clearInterval(announcing);
      if (!options.killed) await this.announce(LEASE_MS, true);
      await this.worker.close(options.killed);
      if (options.killed) await this.announce(KILLED_LEASE_MS);
      else await options.store.withdrawWorker(id);
    });
  }

  static async start(options: SimulatedWorkerOptions): Promise<SimulatedWorker> {
    const simulated = new SimulatedWorker(options);
    await simulated.worker.waitUntilReady();
    await simulated.announce(LEASE_MS);
    return simulated;
  }

  /** Leaves as soon as it is idle. */
  stop(): void {
    this.leave();
  }

  private async announce(ttlMs: number, draining = false): Promise<void> {
    const { store, id, slots } = this.options;
    await store.announceWorker(testWorker(id, slots, { draining }), ttlMs);
  }

  private async take({ job_id, attempt }: QueuePayload): Promise<void> {
    const { store, id, attempts, killed } = this.options;
    this.taken += 1;
    const dies = killed && this.taken === attempts;
    const leaseMs = dies ? KILLED_LEASE_MS : LEASE_MS;
    const claim = await store.claimAttempt(job_id, attempt, id, leaseMs, { allocated: true });
    if (claim.granted) {
      const { execution } = claim;
      await this.train(job_id, execution);
      if (dies) return this.leave();
      const { desired } = await store.renewLease(job_id, execution, LEASE_MS);
      if (desired !== 'cancel' && attempt === 1 && Number.parseInt(job_id.slice(-1), 32) % 8 === 0)
        await store.releaseAttempt(job_id, execution, {
          to: 'queued',
          reason: 'rank_lost',
          delay_ms: RETRY_DELAY_MS,
        });
      else await store.finishJob(job_id, execution, desired === 'cancel' ? 'cancelled' : 'succeeded');
    }
    this.ended += 1;
    if (this.ended >= attempts) this.leave();
  }

  /** Writes the reports of an agent about a small training. */
  private async train(id: string, execution: Execution): Promise<void> {
    const { store } = this.options;
    const emit = (type: string, data: object) =>
      store.appendEvent(id, execution, { type, data: { ...data } });
    await store.transition(id, execution, 'starting');
    await emit('data.prepared', {
      documents: 1,
      tokens: 4300,
      sequences: 268,
      tokens_digest: `sha256:${'0'.repeat(64)}`,
    });
    await store.transition(id, execution, 'running', { patch: { world_size: 1 } });
    await emit('training.started', {
      step: 0,
      world_size: 1,
      placements: [{ worker_id: this.options.id, slots: 1 }],
    });
    const lines = Array.from({ length: LOG_LINES }, (_, i) =>
      logLine(`step ${i} of a training of which lines are logged`),
    );
    await store.appendLogs(id, execution, lines, { batch: 1 });
    let last: string | null = null;
    for (let step = METRICS_AT_ONCE; step <= STEPS; step += METRICS_AT_ONCE) {
      const metrics = Array.from({ length: METRICS_AT_ONCE }, (_, i) =>
        metricOf(step - METRICS_AT_ONCE + i + 1),
      );
      await store.report(id, execution, metrics, progressOf(step), { batch: step / METRICS_AT_ONCE });
      if (SAVES.includes(step)) last = await this.save(id, execution, step, last);
    }
  }

  /** Retention keeps the newest checkpoint. */
  private async save(
    jobId: string,
    execution: Execution,
    step: number,
    before: string | null,
  ): Promise<string> {
    const { store } = this.options;
    const checkpoint = checkpointOf(jobId, step);
    await store.commitCheckpoint(jobId, execution, checkpoint);
    await store.appendEvent(jobId, execution, {
      type: 'checkpoint.saved',
      data: { id: checkpoint.id, step, stall_ms: 3.2, write_ms: 40.1 },
    });
    if (before !== null) await store.removeCheckpoint(jobId, execution, before);
    return checkpoint.id;
  }
}

function logLine(message: string) {
  return {
    at: new Date().toISOString(),
    rank: 0,
    stream: 'stdout' as const,
    message,
    truncated: false,
    dropped: 0,
  };
}

function metricOf(step: number): MetricInput {
  return {
    step,
    loss: 5.545177459716797 / step,
    grad_norm: 1.2345678806304932,
    lr: 3e-4,
    seconds: {
      total: 0.0123,
      data: 0.0001,
      forward: 0.004,
      backward: 0.006,
      exchange: 0.001,
      optimizer: 0.001,
      gather: 0.0002,
    },
    tokens: step * 16,
    tokens_per_second: 1300.8,
    world_size: 1,
    memory_bytes: 1_000_000_000,
  };
}

function progressOf(step: number): ReportedProgress {
  return {
    step,
    tokens: step * 16,
    loss: 5.545177459716797 / step,
    tokens_per_second: 1300.8,
    eta_seconds: 1,
  };
}

function checkpointOf(jobId: string, step: number): Checkpoint {
  const id = `ckpt_${ulid()}`;
  return {
    id,
    job_id: jobId,
    step,
    world_size: 1,
    state_digest: '0'.repeat(32),
    bytes: 1_234_567,
    committed_at: new Date().toISOString(),
    pinned: false,
    damaged: false,
    prefix: `jobs/${jobId}/checkpoints/${String(step).padStart(12, '0')}-${id}`,
  };
}
