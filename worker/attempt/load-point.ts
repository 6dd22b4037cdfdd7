/** What the ranks of a job load before their first step. */

import { type Checkpoint, modelKey, ZerofleetError } from '../../contracts/index.js';
import type { CheckpointLoad, LoadSource, Restore } from '../../contracts/rank-protocol.js';
import { checkpointOf } from '../../platform/checkpoint/checkpoint-of.js';
import type { Manifest } from '../../platform/checkpoint/manifest.js';
import { readWeights } from '../../platform/models/read-weights.js';
import { retry } from '../../platform/process/retry.js';
import { readManifest } from '../checkpoint/read-manifest.js';
import type { ChecksummedFile } from '../checkpoint/verify-load.js';
import { codeOf, isRetryable } from '../common/errors.js';
import type { AttemptContext } from './context.js';
import { type AttemptError, describeError } from './failure.js';

/** What the ranks are told to load, and what the agent must know to verify it and to tell about it. */
export interface LoadPoint {
  source: LoadSource;
  /** What lies in the source's directory, with its checksums. */
  files: readonly ChecksummedFile[];
  /** The job's own checkpoint, with which it goes on; null for what its spec begins with. */
  resume: ResumePoint | null;
  /** What the event says of what the job began with. */
  told: Record<string, unknown>;
  /** Names it in messages. */
  name: string;
}

type InitFrom = NonNullable<AttemptContext['job']['spec']['model']['init_from']>;
type InitModel = Extract<InitFrom, { model: string }>;
type InitCheckpoint = Extract<InitFrom, { checkpoint: string }>;

/** A job's own checkpoint: it goes on where it was. */
export function ownLoad(resume: ResumePoint): LoadPoint {
  return checkpointLoad(resume, 'full', true);
}

/**
 * What the job's spec says it begins with, or null for fresh parameters. That it fits is found out by the ranks.
 * @throws ZerofleetError `checkpoint_not_found`, `model_not_found`; `manifest_invalid`, `model_corrupt`; errors of the object store
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
  throw 'model' in init_from ? modelGone(init_from.model) : gone(init_from.checkpoint, init_from.job);
}

/** Why the job can't begin: what lay there when it was opened was gone or damaged when the ranks read it. */
export function initialError({ source, told, name }: LoadPoint, error: AttemptError): AttemptError {
  const isModel = source.kind === 'model';
  if (error.code === 'object_not_found') {
    const { checkpoint, job_id, model } = told as Record<string, string>;
    return describeError(isModel ? modelGone(`${model}`) : gone(`${checkpoint}`, `${job_id}`));
  }
  const message = `${name}, which the job begins with: ${error.message}`;
  return isModel ? describeError(new ZerofleetError('model_corrupt', message)) : { ...error, message };
}

/** Null when another checkpoint lies there. */
async function openCheckpoint(
  { deps, job, lease }: AttemptContext,
  { checkpoint: id, prefix, restore }: InitCheckpoint,
): Promise<LoadPoint | null> {
  // It may have waited longer than it holds what it begins with. What is not recorded may still be there.
  await lease.call(() => deps.store.holdCheckpoint(id, job.id));
  const manifest = await retry(() => readManifest(deps.objects, prefix), deps.timing.storage, {
    retryable: isRetryable,
    signal: lease.lost,
  });
  if (manifest.id !== id) return null;
  const found = { manifest, prefix, checkpoint: checkpointOf(manifest, prefix) };
  const { source, ...load } = checkpointLoad(found, restore === 'continue' ? 'full' : restore, false);
  // A fork goes on where the checkpoint was, as the job that made it would.
  return { ...load, source: { ...source, own: restore === 'continue' }, told: { ...load.told, restore } };
}

async function openModel({ deps, lease }: AttemptContext, { model, restore }: InitModel): Promise<LoadPoint> {
  const directory = modelKey(model);
  const { files } = await retry(() => readWeights(deps.objects, directory), deps.timing.storage, {
    retryable: isRetryable,
    signal: lease.lost,
  });
  return {
    source: { kind: 'model', directory, restore: restore ?? 'weights' },
    files,
    resume: null,
    told: restore === 'full' ? { model, restore } : { model },
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
    told: { checkpoint: id, job_id, step, state_digest, restore },
    name: `checkpoint ${id} of job ${job_id}`,
  };
}

function gone(id: string, owner: string): ZerofleetError {
  return new ZerofleetError(
    'checkpoint_not_found',
    `checkpoint ${id} of job ${owner}, which the job begins with, is gone; name one that the job still keeps ` +
      '(GET /v1/jobs/{job_id}/checkpoints), or let it keep more (checkpoint.keep_last)',
  );
}

function modelGone(id: string): ZerofleetError {
  return new ZerofleetError(
    'model_not_found',
    `model ${id}, which the job begins with, is gone; upload it again (POST /v1/models)`,
  );
}

/** A checkpoint that training can go on from. */
export interface ResumePoint {
  checkpoint: Checkpoint;
  manifest: Manifest;
  /** Key of its directory. */
  prefix: string;
}
