/** State that the ranks of a job load before their first step. */

import { type Checkpoint, modelKey, ZerofleetError } from '../../../../contracts/index.js';
import type { CheckpointLoad, LoadSource, Restore } from '../../../../contracts/rank-protocol.js';
import { checkpointOf } from '../../../../formats/checkpoint/checkpoint-of.js';
import type { Manifest } from '../../../../formats/checkpoint/manifest.js';
import type { ChecksummedFile } from '../../../../formats/checkpoint/verified-chunks.js';
import { readWeights } from '../../../../formats/models/read-weights.js';
import { codeOf } from '../../../shared/errors.js';
import { readManifest } from '../../../shared/read-manifest.js';
import { requireSameTokens } from '../../../shared/same-tokens.js';
import { type AttemptContext, retryStorage } from '../context.js';
import { type AttemptError, describeError } from '../failure.js';

/** Load source of the ranks, with the data that the agent needs to verify and report it. */
export interface LoadPoint {
  source: LoadSource;
  /** Files in the source's directory, with their checksums. */
  files: readonly ChecksummedFile[];
  /** The job's own checkpoint to resume from; null for the initial source of its spec. */
  resume: ResumePoint | null;
  /** Checkpoint of another job at whose step this job begins; null: it begins at step 0 or resumes. */
  continues: Checkpoint | null;
  /** Data of the `init.loaded` event. */
  event_data: Record<string, unknown>;
  /** Name in messages. */
  name: string;
}

type InitFrom = NonNullable<AttemptContext['job']['spec']['model']['init_from']>;
type InitModel = Extract<InitFrom, { model: string }>;
type InitCheckpoint = Extract<InitFrom, { checkpoint: string }>;

/** Returns the load point of a job's own checkpoint. */
export function ownLoad(resume: ResumePoint): LoadPoint {
  return checkpointLoad(resume, 'full', true);
}

/**
 * Opens the initial source of the job's spec; null for fresh parameters. The ranks check that it fits the job.
 * @throws ZerofleetError `checkpoint_not_found`, `model_not_found`; `manifest_invalid`, `model_corrupt`; errors of the
 *   object store
 */
export async function openInitial(ctx: AttemptContext): Promise<LoadPoint | null> {
  const { init_from } = ctx.job.spec.model;
  if (!init_from) return null;
  try {
    const found =
      'model' in init_from ? await openModel(ctx, init_from) : await openCheckpoint(ctx, init_from);
    if (found !== null) return found;
  } catch (error) {
    if (codeOf(error) !== 'object_not_found') throw error;
  }
  throw 'model' in init_from
    ? missingModel(init_from.model)
    : missingCheckpoint(init_from.checkpoint, init_from.job);
}

/** Returns the error of an initial source that was missing or damaged when the ranks read it. */
export function initialError({ source, event_data, name }: LoadPoint, error: AttemptError): AttemptError {
  const isModel = source.kind === 'model';
  if (error.code === 'object_not_found') {
    const { checkpoint, job_id, model } = event_data as Record<string, string>;
    return describeError(
      isModel ? missingModel(`${model}`) : missingCheckpoint(`${checkpoint}`, `${job_id}`),
    );
  }
  const message = `${name}, the initial source of the job: ${error.message}`;
  return isModel ? describeError(new ZerofleetError('model_corrupt', message)) : { ...error, message };
}

/** Returns null when another checkpoint is stored there. */
async function openCheckpoint(
  ctx: AttemptContext,
  { checkpoint: id, prefix, restore }: InitCheckpoint,
): Promise<LoadPoint | null> {
  const { deps, job, lease } = ctx;
  // The job may have been queued for longer than its hold lasts. A checkpoint without a record may still be there.
  await lease.call(() => deps.store.holdCheckpoint(id, job.id));
  const manifest = await retryStorage(ctx, () => readManifest(deps.objects, prefix));
  if (manifest.id !== id) return null;
  const found = { manifest, prefix, checkpoint: checkpointOf(manifest, prefix) };
  const { source, ...load } = checkpointLoad(found, restore === 'continue' ? 'full' : restore, false);
  // A fork continues at the step of the checkpoint, as the job that made it would.
  return {
    ...load,
    source: { ...source, own: restore === 'continue' },
    continues: restore === 'continue' ? found.checkpoint : null,
    event_data: { ...load.event_data, restore },
  };
}

async function openModel(ctx: AttemptContext, { model, restore }: InitModel): Promise<LoadPoint> {
  const directory = modelKey(model);
  const { files } = await retryStorage(ctx, () => readWeights(ctx.deps.objects, directory));
  const { base } = ctx.job.spec.model;
  const adaptersOnly = base !== undefined && !('model' in base && base.model === model);
  return {
    source: { kind: 'model', directory, adapters_only: adaptersOnly, restore: restore ?? 'weights' },
    files,
    resume: null,
    continues: null,
    event_data: restore === undefined ? { model } : { model, restore },
    name: `model ${model}`,
  };
}

function checkpointLoad(
  resume: ResumePoint,
  restore: Restore,
  own: boolean,
): LoadPoint & { source: CheckpointLoad } {
  const { manifest, prefix, checkpoint } = resume;
  const { id, job_id, step, state_digest } = checkpoint;
  return {
    source: { kind: 'checkpoint', directory: prefix, restore, own },
    files: manifest.shards,
    resume: own ? resume : null,
    continues: null,
    event_data: { checkpoint: id, job_id, step, state_digest, restore },
    name: `checkpoint ${id} of job ${job_id}`,
  };
}

function missingCheckpoint(id: string, owner: string): ZerofleetError {
  return new ZerofleetError(
    'checkpoint_not_found',
    `checkpoint ${id} of job ${owner}, the initial checkpoint of the job, does not exist any more; name one that the job still keeps ` +
      '(GET /v1/jobs/{job_id}/checkpoints), or let it keep more (checkpoint.keep)',
  );
}

function missingModel(id: string): ZerofleetError {
  return new ZerofleetError(
    'model_not_found',
    `model ${id}, the initial model of the job, does not exist any more; upload it again (POST /v1/models)`,
  );
}

/** Checks that the job's data has the same tokens as at a checkpoint. @throws ZerofleetError `tokens_differ` */
export function checkTokens({ manifest, checkpoint }: ResumePoint, tokensDigest: string): void {
  requireSameTokens(
    { owner: 'this worker', digest: tokensDigest },
    { owner: `checkpoint ${checkpoint.id}`, digest: manifest.tokens_digest },
  );
}

/** Checkpoint from which training can resume. */
export interface ResumePoint {
  checkpoint: Checkpoint;
  manifest: Manifest;
  /** Key of its directory. */
  prefix: string;
}

/** Newest checkpoint of a job. */
export interface NewestPoint extends ResumePoint {
  /** Checkpoint of the best evaluation of early stopping; the newest one itself without any. */
  best: ResumePoint;
}
