/**
 * Forwards the metrics of jobs to their experiment trackers, and lets checkpoints answer the prompts of their job.
 * Every API process runs a forwarder; the job store gives each integration to one of them at a time
 * (state/integrations). It only reads what the job has written, so that no job waits for a tracker or an answer.
 */
import type { Integration, Job } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import { type Resolve, resolveByDns } from '../../platform/outgoing/post.js';
import { Periodic } from '../../platform/process/periodic.js';
import type { ClaimedForward, ForwardEvent, ForwardSave, JobStore } from '../../state/index.js';
import { ANSWER_MS, answerCheckpoint } from '../answers/answer-checkpoint.js';
import type { SamplePort } from '../services.js';
import { MlflowRun } from './mlflow-run.js';
import { forwardRun, isGoingOn, type RoundResult, type RunState, runState, type TrackerRun } from './run.js';
import { ServerLimits } from './server-limits.js';
import { TrackerClient, TrackerError } from './tracker-client.js';
import type { Tracker, Trackers } from './trackers.js';
import { WandbRun } from './wandb-run.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

interface ForwarderTiming {
  /** Interval at which due integrations are looked for. */
  poll_ms: number;
  /** Longer than the few requests between two saves. */
  lease_ms: number;
  /** Interval at which a job with news is forwarded. */
  idle_ms: number;
  /** Interval at which a tracker that needs it hears of a run without news. */
  beat_ms: number;
  /** Timeout of one request. */
  timeout_ms: number;
  /** Delay after the first failure; it doubles up to the maximum. */
  first_retry_ms: number;
  max_retry_ms: number;
  /** Time without a success after which an integration is given up. */
  give_up_ms: number;
}

const DEFAULT_TIMING: ForwarderTiming = {
  poll_ms: SECOND,
  lease_ms: 5 * MINUTE,
  idle_ms: 5 * SECOND,
  beat_ms: MINUTE,
  timeout_ms: 30 * SECOND,
  first_retry_ms: 5 * SECOND,
  max_retry_ms: 10 * MINUTE,
  give_up_ms: 24 * HOUR,
};

/** Integrations that one process forwards at once. */
const CONCURRENCY = 16;
/** Each delay is randomly extended by up to this fraction, so that integrations that failed together are spread out. */
const JITTER = 0.25;
/** A server that is too slow for large requests gets smaller ones. */
const MAX_HALVINGS = 4;

export interface ForwarderOptions {
  store: JobStore;
  trackers: Trackers;
  samples: SamplePort;
  log: Logger;
  resolve?: Resolve;
  timing?: Partial<ForwarderTiming>;
}

/** State of an integration that is kept between rounds. */
interface Saved {
  run: RunState;
  /** It is unknown whether the last request had an effect. */
  uncertain: boolean;
  /** Rounds that failed since the last success, and the time of the first of them (Unix time in ms). */
  failures: number;
  failing_since: number | null;
  /** How often the size of requests was halved. */
  halvings: number;
}

/** The claim of the integration has expired, and another process has it; or the job is gone. */
class ClaimLost extends Error {}

export class Forwarder {
  private readonly options: ForwarderOptions;
  private readonly timing: ForwarderTiming;
  private readonly closing = new AbortController();
  private readonly active = new Set<Promise<void>>();
  private readonly projects = new ServerLimits((CONCURRENCY * 3) / 4);
  private readonly hosts = new ServerLimits(CONCURRENCY / 2);
  private readonly urls = new ServerLimits(CONCURRENCY / 2);
  private readonly polling: Periodic;

  constructor(options: ForwarderOptions) {
    this.options = options;
    this.timing = { ...DEFAULT_TIMING, ...options.timing };
    this.polling = new Periodic(
      () => this.poll(),
      this.timing.poll_ms,
      (error) => options.log.warn({ err: error }, 'integrations that are due not found'),
    );
  }

  /** Ends requests in progress; their integrations continue in another process. Idempotent. */
  async close(): Promise<void> {
    this.closing.abort();
    await this.polling.close();
    await Promise.all(this.active);
  }

  private async poll(): Promise<void> {
    const limit = CONCURRENCY - this.active.size;
    if (limit === 0) return;
    const { lease_ms, idle_ms } = this.timing;
    for (const claim of await this.options.store.claimForwards({ limit, lease_ms, idle_ms })) {
      const round = this.forward(claim)
        .catch((error: unknown) => this.warn(claim, error))
        .finally(() => this.active.delete(round));
      this.active.add(round);
    }
  }

  private async forward(claim: ClaimedForward): Promise<void> {
    const { store, trackers } = this.options;
    const { job_id, index } = claim;
    const job = await store.getJob(job_id);
    if (job === null) return;
    const integration = job.spec.integrations[index];
    const saved = savedOf(claim);
    if (integration === undefined) return this.answer(claim, job, saved);
    const server = trackers.find(integration, job.spec.project);
    const url = server?.url ?? '';
    const free = this.enter({ host: server === null ? '' : new URL(url).host, url }, job.spec.project);
    if (free === null) return this.save(claim, { state: saved, next: { due_ms: this.delayAfter(1) } });
    const { halvings, uncertain } = saved;
    let known = saved;
    const save = async (state: RunState, event?: ForwardEvent) => {
      // Only progress ends a series of failures.
      const isFurther = state.step > saved.run.step || state.run_id !== saved.run.run_id;
      known = isFurther ? succeeded(state, halvings) : { ...saved, run: state };
      const { lease_ms } = this.timing;
      await this.save(claim, { state: known, next: { lease_ms }, ...(event && { event }) });
    };
    let result: RoundResult;
    let tracker: TrackerRun;
    try {
      if (server === null) throw new TrackerError('server_not_configured');
      tracker = this.tracker(server, integration, index);
      const limit = Math.ceil(tracker.maxValues / 2 ** halvings);
      const round = { job_id, index, type: integration.type, state: saved.run, uncertain, limit };
      result = await forwardRun(round, { store, tracker, save });
    } catch (error) {
      free(!(error instanceof TrackerError));
      return this.failed(claim, integration, error, { ...known, uncertain: true });
    }
    free(true);
    const state = succeeded(result.state, Math.max(0, halvings - 1));
    await this.save(claim, { state, next: this.nextAfter(result, claim, tracker) });
  }

  /** Lets the next checkpoint of a job answer its prompts. */
  private async answer(claim: ClaimedForward, job: Job, saved: Saved): Promise<void> {
    const { store, samples, log } = this.options;
    const { signal } = this.closing;
    const { project, resources } = job.spec;
    const free = this.enter({ host: 'workers', url: resources.pool }, project);
    if (free === null) return this.save(claim, { state: saved, next: { due_ms: this.delayAfter(1) } });
    let failure: unknown = null;
    try {
      // Beyond the deadline of the answers.
      await this.save(claim, { state: saved, next: { lease_ms: 2 * ANSWER_MS } });
      const round = await answerCheckpoint(job, saved.run.step, { store, samples, signal });
      const { end, step, event } = round;
      const next =
        end === 'ended'
          ? 'done'
          : end === 'more'
            ? { due_ms: 0 }
            : { due_ms: this.timing.idle_ms, seq: claim.seq };
      await this.save(claim, { state: succeeded({ ...saved.run, step }, 0), next, ...(event && { event }) });
    } catch (error) {
      if (error instanceof ClaimLost) throw error;
      failure = error;
    } finally {
      free(failure === null);
    }
    if (failure === null) return;
    if (!signal.aborted)
      log.info({ err: failure, job_id: job.id }, 'prompts not answered, will be tried again');
    const state = { ...saved, failures: saved.failures + 1 };
    await this.save(claim, { state, next: { due_ms: signal.aborted ? 0 : this.delayAfter(state.failures) } });
  }

  /**
   * Anybody can name many addresses of one host, and many names of one machine: hosts and projects have limits as well.
   */
  private enter(
    { host, url }: Record<'host' | 'url', string>,
    project: string,
  ): ((succeeded: boolean) => void) | null {
    const leaveProject = this.projects.enter(project);
    const leaveHost = leaveProject && this.hosts.enter(host);
    // An address that fails does not slow down the others of its host.
    const leaveUrl = leaveHost && this.urls.enter(url);
    const leaveBoth = () => {
      leaveHost?.(true);
      leaveProject?.(true);
    };
    if (leaveUrl === null) {
      leaveBoth();
      return null;
    }
    return (succeeded) => {
      leaveUrl(succeeded);
      leaveBoth();
    };
  }

  private nextAfter(
    { end, state }: RoundResult,
    { seq }: ClaimedForward,
    tracker: TrackerRun,
  ): ForwardSave['next'] {
    const { idle_ms, beat_ms } = this.timing;
    if (end === 'ended') return 'done';
    if (end === 'more') return { due_ms: 0 };
    return { due_ms: idle_ms, seq, ...(tracker.beat && isGoingOn(state) && { beat_ms }) };
  }

  private tracker(server: Tracker, integration: Integration, index: number): TrackerRun {
    const { trackers, resolve = resolveByDns } = this.options;
    const { timeout_ms: timeoutMs } = this.timing;
    const { signal } = this.closing;
    const http = new TrackerClient(server, { policy: trackers.policy, resolve, timeoutMs, signal });
    const Run = { mlflow: MlflowRun, wandb: WandbRun }[integration.type];
    return new Run(http, integration, index);
  }

  private async failed(
    claim: ClaimedForward,
    { type }: Integration,
    error: unknown,
    before: Saved,
  ): Promise<void> {
    if (this.closing.signal.aborted) return this.save(claim, { state: before, next: { due_ms: 0 } });
    if (!(error instanceof TrackerError)) throw error;
    const { log } = this.options;
    const { job_id, index } = claim;
    const now = Date.now();
    const failingSince = before.failing_since ?? now;
    const { code, answer } = error;
    const isSlow = code === 'timeout' || code === 'connection_failed';
    const halvings = isSlow ? Math.min(MAX_HALVINGS, before.halvings + 1) : before.halvings;
    const state: Saved = { ...before, failures: before.failures + 1, failing_since: failingSince, halvings };
    const details = { integration: index, type, error: code, ...answer };
    if (error.isPermanent || now - failingSince >= this.timing.give_up_ms) {
      log.warn({ job_id, ...details }, 'integration given up');
      const event = { type: 'integration.failed', data: details };
      return this.save(claim, {
        state: { ...state, failures: 0, failing_since: null },
        next: 'done',
        event,
      });
    }
    log.info({ job_id, ...details }, 'integration failed, will be tried again');
    await this.save(claim, { state, next: { due_ms: this.delayAfter(state.failures) } });
  }

  private delayAfter(failures: number): number {
    const { first_retry_ms, max_retry_ms } = this.timing;
    const delayMs = Math.min(max_retry_ms, first_retry_ms * 2 ** Math.min(failures - 1, 30));
    return Math.round(delayMs * (1 + JITTER * Math.random()));
  }

  /** @throws ClaimLost */
  private async save(claim: ClaimedForward, save: ForwardSave & { state: Saved }): Promise<void> {
    if (!(await this.options.store.saveForward(claim, save))) throw new ClaimLost();
  }

  /** The claim expires, and the next one continues. */
  private warn({ job_id, index }: ClaimedForward, error: unknown): void {
    if (error instanceof ClaimLost || this.closing.signal.aborted) return;
    this.options.log.warn({ err: error, job_id, integration: index }, 'integration not forwarded');
  }
}

function succeeded(run: RunState, halvings: number): Saved {
  return { run, uncertain: false, failures: 0, failing_since: null, halvings };
}

function savedOf({ state, interrupted }: ClaimedForward): Saved {
  const { run, uncertain = false, ...failing } = (state ?? {}) as Partial<Saved>;
  return { ...succeeded(runState(run), 0), ...failing, uncertain: uncertain || interrupted };
}
