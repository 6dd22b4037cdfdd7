import { ERROR_CATALOGUE, type JobFailure, type ZerofleetError } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { type JobStore, putResult } from '../../state/index.js';
import { misfitOf } from './gpu-fit.js';

interface RefusalOptions {
  store: Pick<JobStore, 'getJob' | 'listWorkers' | 'claimAttempt' | 'appendEvent' | 'finishJob'>;
  objects: ObjectStore;
  log: Pick<Logger, 'warn'>;
}

/** Duration of the lease held while the job is failed. */
const LEASE_MS = 30_000;
const HOLDER = 'scheduler';
/** Pools with cached results. Pool names are arbitrary, so their number is limited. */
const MAX_POOLS = 64;

/**
 * Fails jobs that fit on no GPU of their pool and could not be refused at submission, because no worker was
 * registered. A job that has run before keeps waiting for suitable workers.
 */
export class Refusal {
  /** Ids of jobs that fit on the pool's workers, with the names of these workers. */
  private readonly fitting = new Map<string, { workers: string; ids: Set<string> }>();

  constructor(private readonly options: RefusalOptions) {}

  /** @param jobIds jobs that no group of the pool's workers could run */
  async refuse(pool: string, jobIds: readonly string[]): Promise<void> {
    const { store } = this.options;
    const workers = await store.listWorkers(pool);
    if (workers.some(({ gpus }) => gpus.length === 0)) return;
    const names = workers.map(({ id, gpus }) => `${id} ${gpus.length}`).join();
    const before = this.fitting.get(pool);
    const known = before?.workers === names ? before.ids : new Set<string>();
    const waiting = new Set(jobIds);
    for (const id of known) if (!waiting.has(id)) known.delete(id);
    this.fitting.delete(pool);
    this.fitting.set(pool, { workers: names, ids: known });
    const [oldest] = this.fitting.keys();
    if (this.fitting.size > MAX_POOLS && oldest !== undefined) this.fitting.delete(oldest);
    for (const id of jobIds) {
      if (known.has(id)) continue;
      const job = await store.getJob(id);
      const misfit = job && job.latest_checkpoint === null ? misfitOf(job.spec, workers) : null;
      if (job && misfit) await this.fail(id, job.attempt, misfit);
      else known.add(id);
    }
  }

  private async fail(id: string, attempt: number, { code, message }: ZerofleetError) {
    const { store, objects, log } = this.options;
    const claim = await store.claimAttempt(id, attempt, HOLDER, LEASE_MS);
    if (!claim.granted) return;
    const { execution, job } = claim;
    const { category, retryable } = ERROR_CATALOGUE[code];
    const failure: JobFailure = { category, code, message, rank: null, step: null, retryable };
    const finishedAt = new Date().toISOString();
    await store.appendEvent(id, execution, {
      type: 'attempt.error',
      data: { code, message, rank: null, step: null },
      at: finishedAt,
      root_cause: true,
    });
    await putResult(objects, {
      job_id: id,
      epoch: job.epoch,
      state: 'failed',
      reason: code,
      step: 0,
      total_steps: job.progress.total_steps,
      state_digest: null,
      checkpoint: null,
      metrics: job.progress,
      export: null,
      failure,
      finished_at: finishedAt,
    }).catch((error: unknown) => log.warn({ err: error, job_id: id }, 'could not write result.json'));
    await store.finishJob(id, execution, 'failed', { reason: code, failure });
  }
}
