import { createHash } from 'node:crypto';
import {
  type Checkpoint,
  type EditPayload,
  isFinal,
  type Job,
  type TensorEdit,
  ZerofleetError,
} from '../../../contracts/index.js';
import { editName, editValuesKey, MANIFEST_FILE } from '../../../formats/checkpoint/layout.js';
import { newUlid } from '../../../platform/random.js';
import { DOWNLOAD_HOLDER } from '../../../state/index.js';
import { checkpointNotFound, findCheckpoint, findJob, found } from '../../access/found.js';
import { requireStorage } from '../../access/storage-quota.js';
import { uploadBody } from '../../http/upload-body.js';
import type { EditProgress } from '../../services.js';
import { receiveTensor } from '../../tensors/receive-tensor.js';
import { sendTensor } from '../../tensors/send-tensor.js';
import type { OperationHandler, OperationRequest } from '../types.js';

/** Protection from retention after a request for a tensor: covers its transfer. */
const TENSOR_HOLD_MS = 3_600_000;

export const listCheckpointTensors: OperationHandler<'listCheckpointTensors'> = async (request) => {
  const { inspector } = request.server.services;
  const checkpoint = await findCheckpoint(request.records, request.params.checkpoint_id);
  const { after = null, limit = 20 } = request.query;
  const input = async () => ({ manifest: await readManifest(request, checkpoint), after, limit });
  return inspector.run('listTensors', input, { owner: request.records.project });
};

export const getCheckpointTensor: OperationHandler<'getCheckpointTensor'> = async (request, reply) => {
  const { inspector } = request.server.services;
  const { records } = request;
  const { state = 'master' } = request.query;
  const { checkpoint_id, name } = request.params;
  const checkpoint = await findCheckpoint(records, checkpoint_id);
  const { id, prefix } = checkpoint;
  // Hold first: the shards must not be removed during the transfer.
  if (!(await records.holdCheckpoint(id, DOWNLOAD_HOLDER, TENSOR_HOLD_MS)))
    throw checkpointNotFound(`checkpoint ${id} was removed`);
  const input = async () => ({ manifest: await readManifest(request, checkpoint), name, state });
  const tensor = await inspector.run('findTensor', input, { owner: records.project });
  return sendTensor(request, reply, { directory: prefix, checkpoint_id: id, name, state, found: tensor });
};

export const putCheckpointTensor: OperationHandler<'putCheckpointTensor'> = async (request, reply) => {
  const { inspector, objects, edits, store } = request.server.services;
  const { records } = request;
  const { state = 'master' } = request.query;
  const { checkpoint_id, name } = request.params;
  const checkpoint = await findCheckpoint(records, checkpoint_id);
  const job = await findJob(records, checkpoint.job_id);
  await requireEditable(request, job, checkpoint);
  await requireStorage(store, records.project, String(checkpoint.bytes));
  const input = async () => ({ manifest: await readManifest(request, checkpoint), name, state });
  const { shape } = await inspector.run('findTensor', input, { owner: records.project });
  const { precision } = job.spec.train;
  const key = editValuesKey(job.id, newUlid());
  let isUsed = false;
  try {
    const values = await receiveTensor(objects, key, uploadBody(request.body), {
      name,
      state,
      shape,
      precision,
    });
    const payload = payloadOf(checkpoint, { tensor: name, tensor_state: state, values });
    const { pool } = job.spec.resources;
    const known = await edits.findEdit(pool, payload.edit_id);
    let progress: EditProgress | null = known?.progress.state === 'failed' ? null : (known?.progress ?? null);
    if (progress === null) {
      await requireNewest(request, job.id, checkpoint.id);
      // The checkpoint is kept until the change is made or has failed.
      if (!(await records.holdCheckpoint(checkpoint.id, editName(payload.edit_id))))
        throw checkpointNotFound(`checkpoint ${checkpoint.id} was removed`);
      isUsed = true;
      progress = await edits.requestEdit(pool, payload);
    }
    const { edit_id } = payload;
    return reply
      .code(202)
      .header('location', `/v1/checkpoints/${checkpoint.id}/edits/${edit_id}`)
      .send(editOf(payload, progress));
  } finally {
    if (!isUsed) await objects.delete([key]);
  }
};

export const getTensorEdit: OperationHandler<'getTensorEdit'> = async (request) => {
  const { edits } = request.server.services;
  const { records, params } = request;
  const { checkpoint_id, edit_id } = params;
  const { job_id } = found(await records.findCheckpoint(checkpoint_id), 'checkpoint', checkpoint_id);
  const { spec } = await findJob(records, job_id);
  const edit = await edits.findEdit(spec.resources.pool, edit_id);
  if (edit?.payload.checkpoint.id === checkpoint_id) return editOf(edit.payload, edit.progress);
  throw new ZerofleetError(
    'edit_not_found',
    `no tensor of ${checkpoint_id} was changed by ${edit_id} in the last days`,
  );
};

function payloadOf(
  { id, job_id, prefix }: Checkpoint,
  change: Pick<EditPayload, 'tensor' | 'tensor_state' | 'values'>,
): EditPayload {
  const { tensor, tensor_state, values } = change;
  const parts = [id, tensor, tensor_state, values.sha256];
  const editId = createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
  return { edit_id: editId, job_id, checkpoint: { id, prefix }, ...change };
}

function editOf(
  { edit_id, checkpoint, tensor, tensor_state }: EditPayload,
  progress: EditProgress,
): TensorEdit {
  return {
    id: edit_id,
    made_from: checkpoint.id,
    tensor,
    tensor_state,
    state: progress.state,
    checkpoint_id: progress.state === 'succeeded' ? progress.checkpoint_id : null,
    error: progress.state === 'failed' ? progress.error : null,
  };
}

type TensorRequest = OperationRequest<
  'listCheckpointTensors' | 'getCheckpointTensor' | 'putCheckpointTensor'
>;

/**
 * Checks before the values arrive that they can be used. A repeated request may find a newer checkpoint, which the
 * first one made.
 * @throws ZerofleetError `invalid_state`, `checkpoint_not_newest`
 */
async function requireEditable(
  { records }: TensorRequest,
  { id, state, latest_checkpoint: latest }: Job,
  { id: checkpointId }: Checkpoint,
): Promise<void> {
  if (state !== 'paused' && !isFinal(state))
    throw new ZerofleetError(
      'invalid_state',
      `job ${id} is ${state}: pause it first (POST /v1/jobs/${id}/pause), and change its newest checkpoint then`,
    );
  const newest = latest && (await records.findCheckpoint(latest.id))?.checkpoint;
  if (latest?.id !== checkpointId && newest?.made_from?.checkpoint_id !== checkpointId)
    throw notNewest(checkpointId, latest?.id);
}

/** @throws ZerofleetError `checkpoint_not_newest` */
async function requireNewest({ records }: TensorRequest, jobId: string, id: string): Promise<void> {
  const { latest_checkpoint: latest } = await findJob(records, jobId);
  if (latest?.id !== id) throw notNewest(id, latest?.id);
}

function notNewest(id: string, latest: string | undefined): ZerofleetError {
  const instead = latest === undefined ? '' : `; change ${latest}, or fork the job from ${id}`;
  return new ZerofleetError(
    'checkpoint_not_newest',
    `${id} is not the newest checkpoint of its job${instead}`,
  );
}

/** @throws ZerofleetError `checkpoint_not_found`; errors of the object store */
async function readManifest({ server }: TensorRequest, { id, prefix }: Checkpoint): Promise<Buffer> {
  const { objects } = server.services;
  return objects.get(`${prefix}/${MANIFEST_FILE}`).catch((error: { code?: unknown }) => {
    // A removal deletes the manifest first.
    throw error.code === 'object_not_found' ? checkpointNotFound(`checkpoint ${id} is being removed`) : error;
  });
}
