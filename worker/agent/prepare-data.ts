import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { architectureOf, ZerofleetError } from '../../contracts/index.js';
import { datasetKey } from '../../contracts/object-keys.js';
import { type PreparedTokens, removeAttempt, type TokenRequest } from '../data/prepare-tokens.js';
import { isRetryable } from '../errors.js';
import { retry } from '../retry.js';
import type { TaskProgress } from '../tasks/protocol.js';
import { runTask } from '../tasks/task-runner.js';
import { type AttemptContext, emit, type GenerationContext, threadsPerRank } from './context.js';

/** What the ranks of a job read. */
export interface PreparedData extends PreparedTokens {
  data_digest: string;
}

/**
 * Prepares a job's data, or finds it prepared; events tell of it.
 * @param signal ends it in the middle
 * @throws ZerofleetError `dataset_not_found`, and those of prepareTokens(); the signal's reason
 */
export async function prepareData(ctx: GenerationContext, signal: AbortSignal): Promise<PreparedData> {
  const { deps, job, lease, log } = ctx;
  const dataset = await lease.call(() => deps.store.getDataset(job.spec.data.dataset));
  if (!dataset) throw new ZerofleetError('dataset_not_found', `dataset ${job.spec.data.dataset} was deleted`);
  const request = {
    dataset,
    object_key: datasetKey(dataset.id),
    data: job.spec.data,
    sequence_length: job.spec.train.sequence_length,
    vocab_size: architectureOf(job.spec.model.config).vocab_size,
    cache_dir: deps.cache_dir,
    num_threads: Math.min(availableParallelism(), threadsPerRank(ctx) * ctx.world_size),
  };
  const tokens = await retry(
    () => runPreparation(ctx, { ...request, attempt: randomUUID() }, signal),
    deps.timing.storage,
    {
      retryable: isRetryable,
      signal,
      onRetry: (error) => log.warn({ err: error }, 'data not prepared yet'),
    },
  );
  await emit(ctx, 'data.prepared', { ...tokens.summary });
  return { ...tokens, data_digest: dataset.digest };
}

async function runPreparation(
  ctx: AttemptContext,
  request: TokenRequest,
  signal: AbortSignal,
): Promise<PreparedTokens> {
  const { deps, log } = ctx;
  const { object_store, programs } = deps;
  const onProgress = (progress: TaskProgress) => void emit(ctx, 'data.preparing', { ...progress });
  try {
    return await runTask(
      programs.task,
      { kind: 'prepare_data', object_store, ...request },
      { signal, log, onProgress },
    );
  } catch (error) {
    // A child that was killed could not do so.
    await removeAttempt(request);
    throw error;
  }
}
