import type { Checkpoint } from '../../../contracts/index.js';
import { MANIFEST_FILE } from '../../../platform/checkpoint/layout.js';
import { DOWNLOAD_HOLDER } from '../../../state/index.js';
import { checkpointNotFound, findCheckpoint } from '../../access/found.js';
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

type TensorRequest = OperationRequest<'listCheckpointTensors' | 'getCheckpointTensor'>;

/** @throws ZerofleetError `checkpoint_not_found`; errors of the object store */
async function readManifest({ server }: TensorRequest, { id, prefix }: Checkpoint): Promise<Buffer> {
  const { objects } = server.services;
  return objects.get(`${prefix}/${MANIFEST_FILE}`).catch((error: { code?: unknown }) => {
    // A removal deletes the manifest first.
    throw error.code === 'object_not_found' ? checkpointNotFound(`checkpoint ${id} is being removed`) : error;
  });
}
