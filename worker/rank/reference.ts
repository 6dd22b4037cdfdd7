import { createHash } from 'node:crypto';
import { ZerofleetError } from '../../contracts/index.js';
import type { ReferenceRecord, StartMessage } from '../../contracts/rank-protocol.js';
import { REFERENCE_FILE } from '../../formats/checkpoint/layout.js';
import type { Manifest } from '../../formats/checkpoint/manifest.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { retryTransient } from '../shared/errors.js';
import type { RankTrainer } from '../shared/native/adapter.js';

/** Log-probabilities of the initial model, which every checkpoint of the job contains; equal on all ranks. */
export interface Reference {
  /** Content of REFERENCE_FILE. */
  bytes: Uint8Array;
  record: ReferenceRecord;
}

/** Checkpoint whose training continues. */
export interface ContinuedCheckpoint {
  /** Key of its directory. */
  directory: string;
  manifest: Pick<Manifest, 'id' | 'job_id' | 'tokens_digest' | 'reference'>;
}

/**
 * Gives the trainer the reference of its objective, after the parameters: that of the continued checkpoint, or else the
 * model as it is now.
 * @returns null if the objective uses no initial model
 * @throws errors of the object store; ZerofleetError `checkpoint_mismatch`, `shard_corrupt`
 */
export async function beginReference(
  { start, objects }: { start: StartMessage; objects: ObjectStore },
  trainer: RankTrainer,
  continued: ContinuedCheckpoint | null,
): Promise<Reference | null> {
  const { objective } = start.spec.train;
  if (objective?.reference !== 'initial') return null;
  if (continued === null) {
    // It passes over all data once, which a user who waits for the first step should know.
    if (start.rank === 0) console.log('computing the log-probabilities of the initial model, the reference');
    const { buffer, byteOffset, byteLength } = await trainer.computeReference();
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    if (start.rank === 0) console.log('the reference is complete');
    return { bytes, record: { bytes: bytes.length, sha256: sha256Of(bytes), objective: objective.type } };
  }
  const reference = await readReference(continued, { start, objects });
  // A copy, because bytes of a store may be a part of a larger buffer, which does not begin at a multiple of 8.
  trainer.setReference(new Float64Array(new Uint8Array(reference.bytes).buffer));
  return reference;
}

async function readReference(
  { directory, manifest }: ContinuedCheckpoint,
  { start, objects }: { start: StartMessage; objects: ObjectStore },
): Promise<Reference> {
  const { reference: record } = manifest;
  const type = start.spec.train.objective?.type;
  const name = `checkpoint ${manifest.id} of job ${manifest.job_id}`;
  if (record?.objective !== type || record === null || manifest.tokens_digest !== start.tokens_digest) {
    throw new ZerofleetError(
      'checkpoint_mismatch',
      `${name} has no reference of the objective ${type} for the data of this job: keep the objective, the data and the evaluation of ` +
        'its job, or write model.init_from.restore: weights, which makes the checkpoint itself the reference',
    );
  }
  const key = `${directory}/${REFERENCE_FILE}`;
  const bytes = await retryTransient(() => objects.get(key), start.save.final);
  if (sha256Of(bytes) !== record.sha256)
    throw new ZerofleetError('shard_corrupt', `${REFERENCE_FILE} of ${name} does not match its SHA-256`);
  return { bytes, record };
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
