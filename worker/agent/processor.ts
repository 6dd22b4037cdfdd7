import { DelayedError, type Job as QueueJob } from 'bullmq';
import { type QueuePayload, type TraceContext, ZerofleetError } from '../../contracts/index.js';
import { retry } from '../../platform/process/retry.js';
import { continueTrace, traceFields } from '../../platform/tracing.js';
import type { Control, GrantedClaim } from '../../state/index.js';
import { Attempt } from '../attempt/attempt.js';
import type { AgentDeps, AttemptContext } from '../attempt/context.js';
import { MAX_LOST_WORKERS } from '../attempt/failure.js';
import { Resizer } from '../attempt/resizer.js';
import { StopRequests } from '../attempt/stop-requests.js';
import { isLeaseLoss, Lease } from '../lease/lease.js';
import { LogReporter } from '../reporting/log-reporter.js';
import { ProgressReporter } from '../reporting/progress-reporter.js';

/** What became of a queue entry: nothing is left to do for it here, or it must be looked at again after a while. */
export type EntryOutcome = { kind: 'done' } | { kind: 'later'; after_ms: number };

/** A claim, and where in the trace of the job's request it is. */
type TracedClaim = GrantedClaim & { trace: TraceContext };

const DONE: EntryOutcome = { kind: 'done' };

/**
 * Turns queue entries into attempts. BullMQ only says that the scheduler allocated slots to an attempt; whether it may run is the job
 * store's answer to the claim, and every outcome is written there before the entry is done.
 */
export class Processor {
  /** Attempts that are at work here, by job. */
  private readonly taken = new Map<string, number>();
  private readonly running = new Map<string, { stops: StopRequests; lease: Lease }>();
  private readonly gone = new AbortController();
  private draining = false;

  constructor(
    private readonly deps: AgentDeps,
    private readonly worker_id: string,
  ) {}

  /**
   * BullMQ's processor. It must not reject in the ordinary way: that would end the entry as failed, and nobody would ever
   * look at the job again. `DelayedError` is BullMQ's word for "handed back".
   */
  async process(entry: QueueJob<QueuePayload>, token: string | undefined): Promise<void> {
    const outcome = await this.takeOnce(entry.data).catch((error: unknown): EntryOutcome => {
      this.deps.log.error({ err: error, ...entry.data }, 'entry handed back');
      return { kind: 'later', after_ms: this.deps.timing.hand_back_ms };
    });
    if (outcome.kind === 'done') return;
    await this.handBack(entry, token, outcome.after_ms);
    throw new DelayedError();
  }

  /**
   * While Redis is away or just coming back the queue refuses, and an entry that is not handed back ends as failed. By the end
   * of the tries its lock has run out: then it can't be ended from here any more, and goes to whoever asks for stalled ones.
   */
  private async handBack(entry: QueueJob<QueuePayload>, token: string | undefined, after_ms: number) {
    const { lease_ms, hand_back_ms } = this.deps.timing;
    const policy = {
      attempts: Math.ceil((2 * lease_ms) / hand_back_ms),
      first_delay_ms: hand_back_ms,
      max_delay_ms: hand_back_ms,
    };
    await retry(() => entry.moveToDelayed(Date.now() + after_ms, token), policy, {
      retryable: (error) => !/^Missing (lock|key)/.test((error as Error).message),
      signal: this.gone.signal,
    });
  }

  /** Nothing is handed back any more: the queue's connections are closed. */
  disconnected(): void {
    this.gone.abort();
  }

  /** Asks every running attempt to save and hand its job back; new entries are handed back at once. */
  drain(): void {
    this.draining = true;
    for (const { stops } of this.running.values()) stops.request('drain');
  }

  /** Stops attempts at once and writes nothing more for them. Their leases run out, and others take them. */
  abandon(reason: Error, jobId?: string): void {
    for (const [id, { lease }] of this.running) if (jobId === undefined || id === jobId) lease.lose(reason);
  }

  /**
   * The queue may hand an entry over again while it is at work here: its lock ran out, as in an outage of Redis. That changes nothing,
   * for the lease says who has the job. A later attempt waits until the one before has ended here.
   */
  private async takeOnce(payload: QueuePayload): Promise<EntryOutcome> {
    const { job_id, attempt } = payload;
    const taken = this.taken.get(job_id);
    if (taken === attempt) return DONE;
    if (taken !== undefined) return { kind: 'later', after_ms: this.deps.timing.hand_back_ms };
    this.taken.set(job_id, attempt);
    try {
      await this.run(payload);
      return DONE;
    } finally {
      this.taken.delete(job_id);
    }
  }

  private async run(payload: QueuePayload): Promise<void> {
    const { store, timing, price_per_rank_hour } = this.deps;
    // The scheduler takes back what was allocated to a worker that takes nothing new.
    if (this.draining || this.deps.processes.problem !== null) return;
    const claimed_at = performance.now();
    const { job_id, attempt } = payload;
    const options = { allocated: true, price_per_rank_hour };
    const claim = await store.claimAttempt(job_id, attempt, this.worker_id, timing.lease_ms, options);
    if (claim.granted) await this.execute({ ...claim, trace: continueTrace(payload.trace) }, claimed_at);
    else this.deps.log.info({ ...payload, code: claim.code }, 'attempt not granted');
  }

  private async execute(claim: TracedClaim, claimed_at: number): Promise<void> {
    const { deps } = this;
    const { job } = claim;
    const { ctx, onControl } = attemptParts(deps, claim, claimed_at);
    const { stops, lease, log } = ctx;
    this.running.set(job.id, { stops, lease });
    if (this.draining) stops.request('drain');
    // A message that is lost is found again at the next renewal of the lease, so the subscription may fail.
    const unwatch = await deps.store.watchControl(job.id, onControl).catch(() => async () => undefined);
    try {
      await new Attempt(ctx, claim).run(poisonOf(claim));
    } catch (error) {
      log.error({ err: error }, 'attempt let go');
      // The lease runs out, and the scheduler has the job wait again.
      if (!lease.lost.aborted && !isLeaseLoss(error)) lease.lose(error as Error);
    } finally {
      this.running.delete(job.id);
      await lease.close();
      await unwatch().catch((error: unknown) => log.warn({ err: error }, 'control subscription not ended'));
    }
  }
}

/** The error of a job whose worker was lost since its last claim, one too many of them. A checkpoint begins the count anew. */
function poisonOf({ lost_workers, lost_workers_before, control }: GrantedClaim): ZerofleetError | null {
  const is_new = lost_workers > lost_workers_before;
  if (!is_new || lost_workers <= MAX_LOST_WORKERS || control.desired !== 'run') return null;
  return new ZerofleetError(
    'workers_lost',
    `${lost_workers} workers were lost with the job, one after the other, without a new checkpoint. If it was not the machines, the job ` +
      'takes its workers down: let it use less memory or fewer ranks, then retry it (POST /v1/jobs/{job_id}/retry)',
  );
}

/** What an attempt shares, and where the job store's word of what is wanted goes. */
function attemptParts(deps: AgentDeps, { job, execution, control, trace }: TracedClaim, claimed_at: number) {
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
    claimed_at,
  );
  const resizer = new Resizer({ store, lease, stops });
  const reporter = new ProgressReporter({
    store,
    lease,
    total_steps: job.spec.train.steps,
    interval_ms: timing.report_interval_ms,
    log,
  });
  const logs = new LogReporter({ store, lease, interval_ms: timing.report_interval_ms, log });
  const ctx: AttemptContext = { deps, job, trace, lease, stops, resizer, reporter, logs, log };
  return { ctx, onControl };
}
