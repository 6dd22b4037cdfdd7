import { createHash, randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import { type Dataset, type Job, type ResolvedJobSpec, ZerofleetError } from '../../../contracts/index.js';
import { datasetKey } from '../../../contracts/object-keys.js';
import type { EvaluationFile } from '../../../contracts/rank-protocol.js';
import {
  architectureOf,
  dataSectionsOf,
  dataWarnings,
  evaluationsOf,
  sequencesOfUnit,
  unitOf,
} from '../../../job-document/index.js';
import { retry } from '../../../platform/process/retry.js';
import { usableCores } from '../../../platform/process/usable-cores.js';
import { isRetryable } from '../../shared/errors.js';
import { type PreparedTokens, removeAttempt, type TokenRequest } from '../../tasks/data/prepare-tokens.js';
import { CacheUse } from '../../tasks/data/token-cache.js';
import type { TaskProgress } from '../../tasks/protocol.js';
import type { JobSession } from '../credentials/job-session.js';
import { withSession } from '../credentials/sessions.js';
import { runTask } from '../supervisor/task-runner.js';
import { type AgentDeps, emit, localRanks, type PlacedContext, threadsPerRank } from './context.js';

/** Files that the ranks of a job read. They stay in the cache until their use ends. */
export interface PreparedData {
  /** Absolute path of the training tokens. */
  token_file: string;
  evaluation_files: EvaluationFile[];
  /** Number of training samples, which batches and epochs count. */
  samples: number;
  /** Digest of the training dataset's content. */
  data_digest: string;
  /** Digest of all tokens, with its algorithm: `sha256:…`. */
  tokens_digest: string;
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
  await emit(ctx, 'data.prepared', {
    ...summary,
    tokens_digest: data.tokens_digest,
    warnings: dataWarnings(summary),
  });
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

/** Summary of the training data, and those of the datasets to evaluate on. */
type Summary = PreparedTokens['summary'] & {
  evaluation: ({ name: string; dataset: string } & PreparedTokens['summary'])[];
};

interface PreparedDataset extends PreparedTokens {
  dataset: Dataset;
}

/**
 * Prepares a job's datasets on this machine one after the other, or finds them in the cache. The session of a job
 * reaches its training dataset; each other one is read in a session of its own, so that policies have a bounded length.
 * @throws ZerofleetError `dataset_not_found`, `credentials_unavailable`, and errors of prepareTokens(); the signal's
 *   reason
 */
export async function prepareTokensOf(
  deps: AgentDeps,
  { id, spec }: Pick<Job, 'id' | 'spec'>,
  options: PrepareOptions,
): Promise<PreparedData & { summary: Summary }> {
  const use = new CacheUse();
  const { signal } = options;
  try {
    const [, ...evaluated] = dataSectionsOf(spec);
    const prepared = [await prepareDataset(deps, { id, spec }, options, use)];
    for (const [i, section] of evaluated.entries()) {
      const job = { id, spec: { ...spec, data: section } };
      const prepare = (session: JobSession | null) => prepareDataset(deps, job, { ...options, session }, use);
      prepared.push(await withSession(deps, job, { purpose: `evaluation-${i}`, signal }, prepare));
    }
    return { ...joined(spec, prepared), use };
  } catch (error) {
    await use.end();
    throw error;
  }
}

function joined(spec: ResolvedJobSpec, prepared: readonly PreparedDataset[]) {
  const [training, ...evaluated] = prepared;
  if (!training) throw new Error('a job has training data');
  const { token_file, validation_file, dataset } = training;
  const paths = [validation_file, ...evaluated.map((each) => each.token_file)].filter(
    (path) => path !== null,
  );
  const named = spec.train.evaluation?.datasets ?? [];
  return {
    token_file,
    evaluation_files: evaluationsOf(spec).map((name, i) => ({ name, path: paths[i] as string })),
    samples: training.summary.sequences / sequencesOfUnit(spec.train),
    data_digest: dataset.digest,
    tokens_digest: digestOfAll(prepared.map(({ tokens_digest }) => tokens_digest)),
    summary: {
      ...training.summary,
      evaluation: named.map((entry, i) => ({ ...entry, ...(evaluated[i] as PreparedTokens).summary })),
    },
  };
}

/** Returns the digest of several digests; that of one is itself. */
function digestOfAll(digests: readonly string[]): string {
  const [only = '', ...more] = digests;
  if (more.length === 0) return only;
  return `sha256:${createHash('sha256').update(digests.join('\n')).digest('hex')}`;
}

/** Prepares the dataset of the document's data section. */
async function prepareDataset(
  deps: AgentDeps,
  { id: jobId, spec }: Pick<Job, 'id' | 'spec'>,
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
