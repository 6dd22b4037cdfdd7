import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import { type Dataset, type Job, type ResolvedJobSpec, ZerofleetError } from '../../contracts/index.js';
import { datasetKey } from '../../contracts/object-keys.js';
import { retry } from '../../platform/process/retry.js';
import { usableCores } from '../../platform/process/usable-cores.js';
import { architectureOf } from '../../spec/index.js';
import { isRetryable } from '../common/errors.js';
import type { JobSession } from '../credentials/job-session.js';
import { type PreparedTokens, removeAttempt, type TokenRequest } from '../data/prepare-tokens.js';
import { CacheUse } from '../data/token-cache.js';
import type { TaskProgress } from '../tasks/protocol.js';
import { runTask } from '../tasks/task-runner.js';
import { type AgentDeps, emit, type GenerationContext, threadsPerRank } from './context.js';

/** Files that the ranks of a job read. They stay in the cache until their use ends. */
export interface PreparedData extends PreparedTokens {
  data_digest: string;
  use: CacheUse;
}

/**
 * Prepares a job's data, or finds it in the cache. Emits events.
 * @param signal aborts the preparation
 * @param before data of an earlier generation, reused while its entry exists
 * @throws ZerofleetError `dataset_not_found`, and errors of prepareTokens(); the signal's reason
 */
export async function prepareData(
  ctx: GenerationContext,
  signal: AbortSignal,
  before: PreparedData | null,
): Promise<PreparedData> {
  if (before && (await before.use.isThere())) return before;
  await before?.use.end();
  const { deps, job, lease, placements, session } = ctx;
  const dataset = await lease.call(() => deps.store.getDataset(job.spec.data.dataset));
  const tokens = await prepareTokensOf(deps, job, dataset, {
    num_threads: threadsPerRank(ctx) * (placements[0]?.slots ?? 1),
    signal,
    session,
    onProgress: (progress) => void emit(ctx, 'data.preparing', { ...progress }),
  });
  await emit(ctx, 'data.prepared', { ...tokens.summary, tokens_digest: tokens.tokens_digest });
  return tokens;
}

export interface PrepareOptions {
  num_threads: number;
  /** Aborts the preparation. */
  signal: AbortSignal;
  session: JobSession | null;
  onProgress(progress: TaskProgress): void;
}

/**
 * Prepares a job's data on this machine, or finds it in the cache.
 * @param dataset the job's dataset; null if it was deleted
 * @throws ZerofleetError `dataset_not_found`, and errors of prepareTokens(); the signal's reason
 */
export async function prepareTokensOf(
  deps: AgentDeps,
  job: Job,
  dataset: Dataset | null,
  options: PrepareOptions,
): Promise<PreparedData> {
  const { spec } = job;
  if (!dataset) throw new ZerofleetError('dataset_not_found', `dataset ${spec.data.dataset} was deleted`);
  const request = {
    ...tokenRequest(spec, dataset),
    cache_dir: deps.cache_dir,
    cache_bytes: deps.cache_bytes,
    num_threads: Math.min(usableCores(), options.num_threads),
  };
  const tokens = await retry(
    () => runPreparation(deps, { ...request, attempt: randomUUID() }, options),
    deps.timing.storage,
    {
      retryable: isRetryable,
      signal: options.signal,
      onRetry: (error) => deps.log.warn({ err: error, job_id: job.id }, 'data preparation failed, retrying'),
    },
  );
  return { ...tokens, data_digest: dataset.digest };
}

/** Returns the inputs that determine a job's tokens. */
export function tokenRequest(spec: ResolvedJobSpec, dataset: Dataset) {
  return {
    dataset,
    object_key: datasetKey(dataset.id),
    data: spec.data,
    sequence_length: spec.train.sequence_length,
    vocab_size: architectureOf(spec.model.config).vocab_size,
  };
}

async function runPreparation(
  { processes, object_store, log }: AgentDeps,
  request: TokenRequest,
  { signal, session, onProgress }: PrepareOptions,
): Promise<PreparedTokens & Pick<PreparedData, 'use'>> {
  try {
    const tokens = await runTask(
      processes,
      { kind: 'prepare_data', object_store, ...request },
      { signal, session, log, onProgress },
    );
    return { ...tokens, use: new CacheUse(dirname(tokens.token_file), request.attempt) };
  } catch (error) {
    // A killed child leaves its temporary files.
    await removeAttempt(request);
    throw error;
  }
}
