/**
 * The agent's part of a change of a tensor. A task writes the files of the new checkpoint, and the agent commits it.
 */
import { decodeTime } from 'ulid';
import { executionOf } from '../../../contracts/execution.js';
import {
  type Checkpoint,
  type EditPayload,
  isFinal,
  type Job,
  ZerofleetError,
} from '../../../contracts/index.js';
import { checkpointOf } from '../../../formats/checkpoint/checkpoint-of.js';
import { checkpointDirectory, checkpointKey, MANIFEST_FILE } from '../../../formats/checkpoint/layout.js';
import { encodeManifest, type Manifest } from '../../../formats/checkpoint/manifest.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { PROGRAM_VERSION } from '../../../platform/process/version.js';
import { newUlid } from '../../../platform/random.js';
import { codeOf, retryTransient } from '../../shared/errors.js';
import { readManifest } from '../../shared/read-manifest.js';
import type { TaskResults } from '../../tasks/protocol.js';
import type { AgentDeps } from '../attempt/context.js';

const TOKEN_DIGITS = 12;
const NONCE_DIGITS = 8;

/** Writes the files of the checkpoint into a directory. */
type WriteFiles = (job: Job, directory: string) => Promise<TaskResults['edit']>;

/**
 * Makes the checkpoint that a change asks for the latest one of its job. May be repeated, also by two workers at once:
 * both write the same bytes to the same keys, and the manifest is created once. The directory has the epoch of the
 * job's last claim and another token, so that a worker that claims the job removes what was not recorded.
 * @returns id of the new checkpoint
 * @throws ZerofleetError `checkpoint_not_found`; `invalid_state`, `checkpoint_not_newest` when the job was resumed or
 *   its newest checkpoint is another one; errors of `write` and of the stores
 */
export async function makeEdit(
  { store, objects, timing }: Pick<AgentDeps, 'store' | 'objects' | 'timing'>,
  payload: EditPayload,
  write: WriteFiles,
): Promise<string> {
  const { edit_id, job_id, checkpoint } = payload;
  const job = await store.getJob(job_id);
  if (job === null) throw new ZerofleetError('checkpoint_not_found', `job ${job_id} is gone`);
  const newest = job.latest_checkpoint && (await store.findCheckpoint(job.latest_checkpoint.id))?.checkpoint;
  if (newest?.made_from?.edit_id === edit_id) return newest.id;
  if (newest?.id !== checkpoint.id) throw notNewest(job, checkpoint.id);
  requireUnclaimed(job, job);
  const directory = directoryOf(job, newest, edit_id);
  const written = await write(job, directory);
  const now = await store.getJob(job_id);
  if (now === null) throw new ZerofleetError('checkpoint_not_found', `job ${job_id} is gone`);
  requireUnclaimed(now, job);
  const old = await retryTransient(() => readManifest(objects, checkpoint.prefix), timing.storage);
  const put = () => putOnce(objects, directory, newManifest(old, written, payload));
  const manifest = await retryTransient(put, timing.storage);
  const source = { sourceId: checkpoint.id, epoch: job.epoch };
  await store.commitEdit(checkpointOf(manifest, directory), source);
  return manifest.id;
}

function directoryOf(job: Job, { step }: Checkpoint, editId: string): string {
  const execution = executionOf(job.epoch, editId.slice(0, TOKEN_DIGITS));
  const nonce = editId.slice(TOKEN_DIGITS, TOKEN_DIGITS + NONCE_DIGITS);
  return checkpointKey(job.id, checkpointDirectory({ step, execution, nonce }));
}

function requireUnclaimed({ id, state, epoch }: Job, before: Job): void {
  if ((state === 'paused' || isFinal(state)) && epoch === before.epoch) return;
  throw new ZerofleetError(
    'invalid_state',
    `job ${id} was resumed before its tensor was changed; pause it, and change its newest checkpoint`,
  );
}

function notNewest({ latest_checkpoint: latest }: Job, id: string): ZerofleetError {
  const message = `${id} is not the newest checkpoint of its job any more; change ${latest?.id ?? 'another job'}`;
  return new ZerofleetError('checkpoint_not_newest', message);
}

/** Id and time follow those of the old checkpoint whatever the clock of this host: lists are in this order. */
function newManifest(
  old: Manifest,
  { shards, state_digest }: TaskResults['edit'],
  { edit_id, tensor, tensor_state }: EditPayload,
): Manifest {
  const madeAt = Math.max(
    Date.now(),
    Date.parse(old.committed_at) + 1,
    decodeTime(old.id.slice(ID_PREFIX.length)) + 1,
  );
  return {
    ...old,
    id: `${ID_PREFIX}${newUlid(madeAt)}`,
    shards,
    state_digest,
    // The losses are those of other weights.
    eval_losses: {},
    parent: old.id,
    made_from: { checkpoint_id: old.id, edit_id, tensor, tensor_state },
    committed_at: new Date(madeAt).toISOString(),
    program_version: PROGRAM_VERSION,
  };
}

const ID_PREFIX = 'ckpt_';

/** Puts the manifest, unless an earlier call has. Returns the stored one. */
async function putOnce(objects: ObjectStore, directory: string, manifest: Manifest): Promise<Manifest> {
  const options = { createOnly: true, contentType: 'application/json' };
  try {
    await objects.put(`${directory}/${MANIFEST_FILE}`, encodeManifest(manifest), options);
    return manifest;
  } catch (error) {
    if (codeOf(error) !== 'precondition_failed') throw error;
    return readManifest(objects, directory);
  }
}
