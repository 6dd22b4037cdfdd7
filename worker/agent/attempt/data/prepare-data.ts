import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import { type Dataset, type Job, type ResolvedJobSpec, ZerofleetError } from '../../../../contracts/index.js';
import { datasetKey } from '../../../../contracts/object-keys.js';
import {
  architectureOf,
  type DataSection,
  evaluationSectionsOf,
  takesCalls,
  trainingSectionsOf,
  unitOf,
} from '../../../../job-document/index.js';
import { retry } from '../../../../platform/process/retry.js';
import { usableCores } from '../../../../platform/process/usable-cores.js';
import { isRetryable } from '../../../shared/errors.js';
import { type PreparedTokens, removeAttempt, type TokenRequest } from '../../../tasks/data/prepare-tokens.js';
import { CacheUse } from '../../../tasks/data/token-cache.js';
import type { TaskProgress } from '../../../tasks/protocol.js';
import type { JobSession } from '../../credentials/job-session.js';
import { withSession } from '../../credentials/sessions.js';
import { runTask } from '../../supervisor/task-runner.js';
import { type AgentDeps, emit, localRanks, type PlacedContext, threadsPerRank } from '../context.js';
import { type JoinedData, joinData, NO_DATA, type PreparedDataset } from './joined-data.js';

/** Prepared data of a job for its ranks. The files stay in the cache until their use ends. */
export interface PreparedData extends Omit<JoinedData, 'summary'> {
  use: CacheUse;
}

/**
 * Prepares a job's data, or finds it in the cache. Emits events.
 * @param signal aborts the preparation
 * @param before data of an earlier generation, reused while its entries exist
 * @throws ZerofleetError `dataset_not_found`, and errors of prepareTokens(); the signal's reason
 */
export async function prepareData(
  ctx: PlacedContext,
  signal: AbortSignal,
  before: PreparedData | null,
): Promise<PreparedData> {
  if (before && (await before.use.isThere())) return before;
  await before?.use.end();
  const { deps, job, lease, session } = ctx;
  const { summary, ...data } = await prepareTokensOf(deps, job, {
    num_threads: threadsPerRank(ctx) * localRanks(ctx),
    signal,
    session,
    getDataset: (id) => lease.call(() => deps.store.getDataset(id)),
    onProgress: (dataset, progress) => void emit(ctx, 'data.preparing', { dataset, ...progress }),
  });
  if (summary) await emit(ctx, 'data.prepared', { ...summary, tokens_digest: data.tokens_digest });
  return data;
}

interface PrepareOptions {
  num_threads: number;
  /** Aborts the preparation. */
  signal: AbortSignal;
  session: JobSession | null;
  getDataset(id: string): Promise<Dataset | null>;
  /** @param dataset id of the dataset that is being prepared */
  onProgress(dataset: string, progress: TaskProgress): void;
}

/**
 * Prepares a job's datasets on this machine one after the other, or finds them in the cache. The session of a job
 * reaches its only training dataset. Each other one is read in a session of its own, so that policies have a bounded
 * length.
 * @throws ZerofleetError `dataset_not_found`, `credentials_unavailable`, and errors of prepareTokens(); the signal's
 *   reason
 */
export async function prepareTokensOf(
  deps: AgentDeps,
  { id, spec }: Pick<Job, 'id' | 'spec'>,
  options: PrepareOptions,
): Promise<PreparedData & Pick<JoinedData, 'summary'>> {
  const use = new CacheUse();
  if (takesCalls(spec.train)) return { ...NO_DATA, use };
  const { signal } = options;
  const prepareAll = async (sections: readonly DataSection[], purpose: string | null) => {
    const prepared: PreparedDataset[] = [];
    for (const [i, section] of sections.entries()) {
      const job = { id, spec: { ...spec, data: section } };
      const prepare = (session: JobSession | null) => prepareDataset(deps, job, { ...options, session }, use);
      const made =
        purpose === null
          ? prepare(options.session)
          : withSession(deps, job, { purpose: `${purpose}-${i}`, signal }, prepare);
      prepared.push(await made);
    }
    return prepared;
  };
  try {
    const training = await prepareAll(trainingSectionsOf(spec.data), spec.data.mixture ? 'data' : null);
    const evaluated = await prepareAll(evaluationSectionsOf(spec), 'evaluation');
    return { ...joinData(spec, training, evaluated), use };
  } catch (error) {
    await use.end();
    throw error;
  }
}

/** Prepares the dataset of the document's data section. */
async function prepareDataset(
  deps: AgentDeps,
  { id: jobId, spec }: { id: string; spec: ResolvedJobSpec & { data: DataSection } },
  options: PrepareOptions,
  use: CacheUse,
): Promise<PreparedDataset> {
  const dataset = await options.getDataset(spec.data.dataset);
  if (!dataset) throw new ZerofleetError('dataset_not_found', `dataset ${spec.data.dataset} was deleted`);
  const request = {
    ...tokenRequest(spec, dataset),
    cache_dir: deps.cache_dir,
    cache_bytes: deps.cache_bytes,
    num_threads: Math.min(usableCores(), options.num_threads),
  };
  const tokens = await retry(
    () => runPreparation(deps, { ...request, attempt: randomUUID() }, options, use),
    deps.timing.storage,
    {
      retryable: isRetryable,
      signal: options.signal,
      onRetry: (error) => deps.log.warn({ err: error, job_id: jobId }, 'data preparation failed, retrying'),
    },
  );
  return { ...tokens, dataset };
}

/** Returns the inputs that determine a job's tokens. */
export function tokenRequest(spec: ResolvedJobSpec, dataset: Dataset) {
  return {
    dataset,
    object_key: datasetKey(dataset.id),
    data: spec.data,
    unit: unitOf(spec.train),
    sequence_length: spec.train.sequence_length,
    vocab_size: architectureOf(spec.model.config).vocab_size,
  };
}

async function runPreparation(
  { processes, object_store, log }: AgentDeps,
  request: TokenRequest,
  { signal, session, onProgress }: PrepareOptions,
  use: CacheUse,
): Promise<PreparedTokens> {
  try {
    const tokens = await runTask(
      processes,
      { kind: 'prepare_data', object_store, ...request },
      { signal, session, log, onProgress: (progress) => onProgress(request.dataset.id, progress) },
    );
    use.add(dirname(tokens.token_file), request.attempt);
    return tokens;
  } catch (error) {
    // A killed child leaves its temporary files.
    await removeAttempt(request);
    throw named(error, request.dataset);
  }
}

/** Adds the dataset to an error of the data that does not name it. */
function named(error: unknown, { id }: Dataset): unknown {
  if (!(error instanceof ZerofleetError) || error.kind.category !== 'data' || error.message.includes(id))
    return error;
  return new ZerofleetError(error.code, `dataset ${id}: ${error.message}`, { cause: error });
}
