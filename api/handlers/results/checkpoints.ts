import { forkDocument } from '../../../clients/typescript/fork-document.js';
import type { Checkpoint, CheckpointVerdict, JobSpec } from '../../../contracts/index.js';
import { pinKey } from '../../../formats/checkpoint/layout.js';
import { checkpointNotFound, findCheckpoint, findJob, found } from '../../access/found.js';
import { conditionOf, sendJob } from '../../http/etag.js';
import {
  createdBefore,
  idempotencyOf,
  record,
  sendCreated,
  specLookups,
} from '../../jobs/changes/create-job.js';
import { deleteCheckpoint as remove } from '../../jobs/changes/deletions.js';
import { readySpec } from '../../jobs/ready-spec.js';
import { verifyCheckpoint as verify } from '../../jobs/verify-checkpoint.js';
import type { OperationHandler } from '../types.js';

export const checkpointJob: OperationHandler<'checkpointJob'> = async (request, reply) => {
  const condition = conditionOf(request.headers['if-match']);
  const job = await request.records.requestCheckpoint(request.params.job_id, condition);
  return sendJob(reply.code(202), job);
};

export const forkJob: OperationHandler<'forkJob'> = async (request, reply) => {
  const { contract } = request.server.services;
  const { records: store } = request;
  const source = await findJob(store, request.params.job_id);
  const { from_checkpoint = source.latest_checkpoint?.id, overrides = {} } = request.body;
  if (from_checkpoint === undefined) throw checkpointNotFound(`${source.id} has no checkpoint yet`);
  const checkpoint = await findCheckpoint(store, from_checkpoint);
  if (checkpoint.job_id !== source.id)
    throw checkpointNotFound(`${checkpoint.id} is not a checkpoint of ${source.id}`);
  const document = forkDocument(source.spec, checkpoint, overrides);
  const idempotency = idempotencyOf(request, `forkJob/${source.id}`);
  const created = await createdBefore(request, document, idempotency);
  if (created !== null) return sendCreated(reply, created);
  const schemaErrors = contract.jobSpecErrors(document);
  const spec = await readySpec(request, reply, { document, schemaErrors, find: specLookups(request) });
  return sendCreated(reply, await record(request, { spec, given: document as JobSpec }, idempotency));
};

export const getCheckpoint: OperationHandler<'getCheckpoint'> = (request): Promise<Checkpoint> =>
  findCheckpoint(request.records, request.params.checkpoint_id);

export const updateCheckpoint: OperationHandler<'updateCheckpoint'> = async (request) => {
  const { checkpoint_id: id } = request.params;
  const { objects } = request.server.services;
  const { records: store } = request;
  const { pinned } = request.body;
  const changed = found(await store.pinCheckpoint(id, pinned), 'checkpoint', id);
  // Stored for restoring the records after a loss of Redis; see control/recovery.
  const mark = pinKey(changed.prefix);
  if (pinned) await objects.put(mark, new Uint8Array());
  else await objects.delete([mark]);
  return changed;
};

export const deleteCheckpoint: OperationHandler<'deleteCheckpoint'> = async (request, reply) => {
  await remove(request.server.services, request.records, request.params.checkpoint_id);
  return reply.code(204).send();
};

export const verifyCheckpoint: OperationHandler<'verifyCheckpoint'> = async (
  request,
): Promise<CheckpointVerdict> => {
  const { objects } = request.server.services;
  const { records: store } = request;
  return verify(objects, await findCheckpoint(store, request.params.checkpoint_id));
};
