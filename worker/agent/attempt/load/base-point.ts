/** Frozen base under the adapters of a job. */

import { modelKey, ZerofleetError } from '../../../../contracts/index.js';
import type { BaseLoad, LoadedBase } from '../../../../contracts/rank-protocol.js';
import { sumDigests } from '../../../../formats/checkpoint/digest.js';
import type { ChecksummedFile } from '../../../../formats/checkpoint/verified-chunks.js';
import { readWeights } from '../../../../formats/models/read-weights.js';
import type { ObjectStore } from '../../../../platform/object-store/index.js';
import { baseError } from '../../../shared/errors.js';
import { readManifest } from '../../../shared/read-manifest.js';
import { verifyLoadedRanges } from '../../../shared/verify-load.js';
import { type AttemptContext, retryStorage } from '../context.js';
import type { ResumePoint } from './load-point.js';

/** Load source of the base, with the data that the agent needs to verify it. */
export interface BasePoint {
  source: BaseLoad;
  /** Files in the source's directory, with their checksums. */
  files: readonly ChecksummedFile[];
  /** Digest that the checkpoint to resume from was trained over; null for a fresh training. */
  digest: string | null;
}

/**
 * Opens the base of the job's adapters; null without adapters.
 * @param resume the job's own checkpoint to resume from
 * @throws ZerofleetError `base_damaged`; transient errors of the object store
 */
export async function openBase(ctx: AttemptContext, resume: ResumePoint | null): Promise<BasePoint | null> {
  const { base } = ctx.job.spec.model;
  if (base === undefined) return null;
  const digest = resume?.manifest.base?.digest ?? null;
  if ('seed' in base) return { source: { kind: 'seed', seed: base.seed }, files: [], digest };
  const { objects } = ctx.deps;
  try {
    if ('model' in base) {
      const directory = modelKey(base.model);
      const { files } = await retryStorage(ctx, () => readWeights(objects, directory));
      return { source: { kind: 'model', directory }, files, digest };
    }
    const directory = base.prefix;
    const manifest = await retryStorage(ctx, () => readManifest(objects, directory));
    return { source: { kind: 'checkpoint', directory }, files: manifest.shards, digest };
  } catch (error) {
    throw baseError(error);
  }
}

/**
 * Verifies the base that the ranks read, and that it is the one of the checkpoint to resume from.
 * @throws ZerofleetError `base_damaged`; transient errors of the object store
 */
export async function verifyBase(
  objects: ObjectStore,
  { source, files, digest }: BasePoint,
  loaded: readonly LoadedBase[],
): Promise<void> {
  try {
    const ranges = loaded.flatMap((part) => part.ranges);
    if (source.kind !== 'seed') await verifyLoadedRanges(objects, source.directory, files, ranges);
  } catch (error) {
    throw baseError(error);
  }
  const found = sumDigests(loaded.map(({ digest_part }) => digest_part));
  if (digest === null || digest === found) return;
  throw new ZerofleetError(
    'base_damaged',
    `the base of the adapters has the digest ${found}, and the checkpoint was trained over ${digest}`,
  );
}
