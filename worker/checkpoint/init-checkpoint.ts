/** The checkpoint of another job that a job begins with (`model.init_from`). */
import { ZerofleetError } from '../../contracts/index.js';
import type { LoadSource } from '../../contracts/rank-protocol.js';
import type { AttemptContext } from '../agent/context.js';
import { type AttemptError, describeError } from '../agent/failure.js';
import { codeOf, isRetryable } from '../errors.js';
import { retry } from '../retry.js';
import { checkpointOf, type ResumePoint } from './job-checkpoints.js';
import { readManifest } from './read-manifest.js';

/** A checkpoint that the ranks load before their first step. */
export type LoadPoint = ResumePoint & Pick<LoadSource, 'restore' | 'own'>;

/** A job's own checkpoint: it goes on where it was. */
export function ownLoad(resume: ResumePoint): LoadPoint {
  return { ...resume, restore: 'full', own: true };
}

/**
 * What the job's spec says it begins with, or null for fresh parameters. That it fits is found out by the ranks.
 * @throws ZerofleetError `checkpoint_not_found`; `manifest_invalid`; errors of the object store
 */
export async function openInitial({ deps, job, lease }: AttemptContext): Promise<LoadPoint | null> {
  const { init_from } = job.spec.model;
  if (!init_from) return null;
  const { checkpoint: id, job: owner, prefix, restore } = init_from;
  try {
    const manifest = await retry(() => readManifest(deps.objects, prefix), deps.timing.storage, {
      retryable: isRetryable,
      signal: lease.lost,
    });
    if (manifest.id === id) {
      return { manifest, prefix, checkpoint: checkpointOf(manifest, prefix), restore, own: false };
    }
  } catch (error) {
    if (codeOf(error) !== 'object_not_found') throw error;
  }
  throw gone(id, owner);
}

/** Why the job can't begin: what lay there when it was opened was gone or damaged when the ranks read it. */
export function initialError({ checkpoint: { id, job_id } }: LoadPoint, error: AttemptError): AttemptError {
  if (error.code === 'object_not_found') return describeError(gone(id, job_id));
  return {
    ...error,
    message: `checkpoint ${id} of job ${job_id}, which the job begins with: ${error.message}`,
  };
}

function gone(id: string, owner: string): ZerofleetError {
  return new ZerofleetError(
    'checkpoint_not_found',
    `checkpoint ${id} of job ${owner}, which the job begins with, is gone; name one that the job still keeps ` +
      '(GET /v1/jobs/{job_id}/checkpoints), or let it keep more (checkpoint.keep_last)',
  );
}
