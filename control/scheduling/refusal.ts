import { ERROR_CATALOGUE, type JobFailure, type ZerofleetError } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { JobStorePort } from '../../state/index.js';
import { putResult } from '../recovery/documents.js';
import { misfitOf } from './gpu-fit.js';

export interface RefusalOptions {
  store: Pick<JobStorePort, 'getJob' | 'listWorkers' | 'claimAttempt' | 'appendEvent' | 'finishJob'>;
  objects: ObjectStore;
  log: Pick<Logger, 'warn'>;
}

/** Nobody else touches the job while it is failed. */
const LEASE_MS = 30_000;
const HOLDER = 'scheduler';
/** Pools of which is remembered what fits there; any name may be a pool's. */
const MAX_POOLS = 64;

/**
 * Fails jobs that none of their pool's GPUs is large enough for: those that could have said so when a job was sent were not there. One
 * that has run before waits for such as it ran on.
 */
export class Refusal {
  /** Jobs that fit on the workers of a pool as they were, whose names stand with them. */
  private readonly fitting = new Map<string, { workers: string; ids: Set<string> }>();

  constructor(private readonly options: RefusalOptions) {}

  /** @param jobIds those that no group of the pool's workers could run */
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
    const finished_at = new Date().toISOString();
    await store.appendEvent(id, execution, {
      type: 'attempt.error',
      data: { code, message, rank: null, step: null },
      at: finished_at,
      blame: true,
    });
    await putResult(objects, {
      job_id: id,
      epoch: job.epoch,
      state: 'failed',
      step: 0,
      total_steps: job.spec.train.steps,
      state_digest: null,
      checkpoint: null,
      metrics: job.progress,
      export: null,
      failure,
      finished_at,
    }).catch((error: unknown) => log.warn({ err: error, job_id: id }, 'result.json not written'));
    await store.finishJob(id, execution, 'failed', { reason: code, failure });
  }
}
