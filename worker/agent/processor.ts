import { DelayedError, type Job as QueueJob } from 'bullmq';
import { type QueuePayload, type TraceContext, ZerofleetError } from '../../contracts/index.js';
import { retry } from '../../platform/process/retry.js';
import { continueTrace, traceFields } from '../../platform/tracing.js';
import type { Control, GrantedClaim } from '../../state/index.js';
import { Attempt } from './attempt/attempt.js';
import type { AgentDeps, AttemptContext } from './attempt/context.js';
import { MAX_LOST_WORKERS } from './attempt/failure.js';
import { Resizer } from './attempt/resizer.js';
import { StopRequests } from './attempt/stop-requests.js';
import { isLeaseLoss, Lease } from './lease/lease.js';
import { LogReporter } from './reporting/log-reporter.js';
import { ProgressReporter } from './reporting/progress-reporter.js';

/** Outcome of a queue entry: done, or to be looked at again later. */
type EntryOutcome = { kind: 'done' } | { kind: 'retry'; after_ms: number };

/** Claim with its position in the trace of the job's request. */
type TracedClaim = GrantedClaim & { trace: TraceContext };

const DONE: EntryOutcome = { kind: 'done' };

/**
 * Turns queue entries into attempts. A queue entry says that the scheduler allocated slots to an attempt; the job
 * store's answer to the claim says whether the attempt may run. Every outcome is written to the job store before the
 * entry is done.
 */
export class Processor {
  /** Attempts that run here, by job. */
  private readonly attempts = new Map<string, number>();
  private readonly running = new Map<string, { stops: StopRequests; lease: Lease }>();
  private readonly queueClosed = new AbortController();
  private draining = false;

  constructor(
    private readonly deps: AgentDeps,
    private readonly workerId: string,
  ) {}

  /**
   * Processes an entry for BullMQ. An ordinary rejection would fail the entry, and the job would never run again.
   * @throws DelayedError BullMQ's signal that the entry was returned to the queue
   */
  async process(entry: QueueJob<QueuePayload>, token: string | undefined): Promise<void> {
    const outcome = await this.runOnce(entry.data).catch((error: unknown): EntryOutcome => {
      this.deps.log.error({ err: error, ...entry.data }, 'entry returned to the queue');
      return { kind: 'retry', after_ms: this.deps.timing.hand_back_ms };
    });
    if (outcome.kind === 'done') return;
    await this.handBack(entry, token, outcome.after_ms);
    throw new DelayedError();
  }

  /**
   * Returns an entry to the queue, with retries: Redis refuses while it is away or loading, and an entry that is not
   * returned fails. When the retries end, the lock of the entry has expired, and it goes to the next worker that checks
   * for stalled entries.
   */
  private async handBack(entry: QueueJob<QueuePayload>, token: string | undefined, afterMs: number) {
    const { lease_ms, hand_back_ms } = this.deps.timing;
    const policy = {
      attempts: Math.ceil((2 * lease_ms) / hand_back_ms),
      first_delay_ms: hand_back_ms,
      max_delay_ms: hand_back_ms,
    };
    await retry(() => entry.moveToDelayed(Date.now() + afterMs, token), policy, {
      retryable: (error) => !/^Missing (lock|key)/.test((error as Error).message),
      signal: this.queueClosed.signal,
    });
  }

  /** Ends all retries of `handBack`: the connections of the queue are closed. */
  disconnected(): void {
    this.queueClosed.abort();
  }

  /** Requests every running attempt to save and return its job; new entries are returned at once. */
  drain(): void {
    this.draining = true;
    for (const { stops } of this.running.values()) stops.request('drain');
  }

  /** Stops attempts at once and writes nothing more for them. Their leases expire, and other workers take the jobs. */
  abandon(reason: Error, jobId?: string): void {
    for (const [id, { lease }] of this.running) if (jobId === undefined || id === jobId) lease.lose(reason);
  }

  /**
   * Runs an entry unless it runs here. The queue delivers an entry again if its lock expired, as in an outage of Redis;
   * the lease, not the entry, says which worker has the job. A later attempt waits until the one before has ended here.
   */
  private async runOnce(payload: QueuePayload): Promise<EntryOutcome> {
    const { job_id, attempt } = payload;
    const runningAttempt = this.attempts.get(job_id);
    if (runningAttempt === attempt) return DONE;
    if (runningAttempt !== undefined) return { kind: 'retry', after_ms: this.deps.timing.hand_back_ms };
    this.attempts.set(job_id, attempt);
    try {
      await this.run(payload);
      return DONE;
    } finally {
      this.attempts.delete(job_id);
    }
  }

  private async run(payload: QueuePayload): Promise<void> {
    const { store, timing, price_per_rank_hour } = this.deps;
    // The scheduler reclaims the slots of a worker that takes no new work.
    if (this.draining || this.deps.processes.problem !== null) return;
    const claimedAt = performance.now();
    const { job_id, attempt } = payload;
    const options = { allocated: true, price_per_rank_hour };
    const claim = await store.claimAttempt(job_id, attempt, this.workerId, timing.lease_ms, options);
    if (claim.granted) await this.execute({ ...claim, trace: continueTrace(payload.trace) }, claimedAt);
    else this.deps.log.info({ ...payload, code: claim.code }, 'attempt not granted');
  }

  private async execute(claim: TracedClaim, claimedAt: number): Promise<void> {
    const { deps } = this;
    const { job } = claim;
    const { ctx, onControl } = attemptParts(deps, claim, claimedAt);
    const { stops, lease, log } = ctx;
    this.running.set(job.id, { stops, lease });
    if (this.draining) stops.request('drain');
    // The next renewal of the lease delivers a lost control message, so the subscription may fail.
    const unwatch = await deps.store.watchControl(job.id, onControl).catch(() => async () => undefined);
    try {
      await new Attempt(ctx, claim).run(workersLost(claim));
    } catch (error) {
      log.error({ err: error }, 'attempt abandoned');
      // The lease expires, and the scheduler queues the job again.
      if (!lease.lost.aborted && !isLeaseLoss(error)) lease.lose(error as Error);
    } finally {
      this.running.delete(job.id);
      await lease.close();
      await unwatch().catch((error: unknown) => log.warn({ err: error }, 'control subscription not ended'));
    }
  }
}

/** Returns the error of a job that lost too many workers in a row, or null. A checkpoint resets the count. */
function workersLost({ lost_workers, lost_workers_before, control }: GrantedClaim): ZerofleetError | null {
  const isNew = lost_workers > lost_workers_before;
  if (!isNew || lost_workers <= MAX_LOST_WORKERS || control.desired !== 'run') return null;
  return new ZerofleetError(
    'workers_lost',
    `${lost_workers} workers were lost with the job, one after the other, without a new checkpoint. If the machines were healthy, the job ` +
      'exhausts its workers: let it use less memory or fewer ranks, then retry it (POST /v1/jobs/{job_id}/retry)',
  );
}

/** Builds the context of an attempt and the handler of its control messages. */
function attemptParts(deps: AgentDeps, { job, execution, control, trace }: TracedClaim, claimedAt: number) {
  const { store, timing } = deps;
  const log = deps.log.child({ job_id: job.id, epoch: job.epoch, ...traceFields(trace) });
  const stops = new StopRequests();
  stops.setDesired(control.desired);
  stops.setSaveRequest(control.save_request);
  const onControl = (now: Control) => {
    stops.setDesired(now.desired);
    stops.setSaveRequest(now.save_request);
    resizer.onControl(now);
  };
  const lease = new Lease(
    { store, job_id: job.id, execution, lease_ms: timing.lease_ms, log, onControl },
    claimedAt,
  );
  const resizer = new Resizer({ store, lease, stops });
  const reporter = new ProgressReporter({
    store,
    lease,
    interval_ms: timing.report_interval_ms,
    log,
    evaluations: job.progress.evaluations,
    train: job.spec.train,
  });
  const logs = new LogReporter({ store, lease, interval_ms: timing.report_interval_ms, log });
  const ctx: AttemptContext = { deps, job, trace, lease, stops, resizer, reporter, logs, log };
  return { ctx, onControl };
}
