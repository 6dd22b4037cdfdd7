import { Readable } from 'node:stream';
import {
  type Model,
  type ModelPatch,
  modelDocumentKey,
  modelKey,
  ZerofleetError,
} from '../../../contracts/index.js';
import { putModelDocument } from '../../../control/recovery/documents.js';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import { MODEL_TYPES, modelWarnings, presets } from '../../../spec/index.js';
import type { ModelRecords } from '../../../state/index.js';
import { keepRecord, patched } from '../../access/change-record.js';
import { requireStorage } from '../../access/storage-quota.js';
import { sendRecord } from '../../http/etag.js';
import { whileSilent } from '../../http/long-request.js';
import { leaveRestUnread, uploadBody } from '../../http/upload-body.js';
import { tooLarge } from '../../models/archive.js';
import { BucketModel } from '../../models/bucket-folder.js';
import { copyFolder, type ModelHead, storeModel } from '../../models/store-model.js';
import type { OperationHandler, OperationRequest } from '../types.js';

export const createModel: OperationHandler<'createModel'> = async (request, reply) => {
  const { uri } = request.query;
  try {
    const model =
      uri === undefined
        ? await receive(request)
        : await whileSilent(request, reply, (signal) => copy(request, uri, signal));
    const warnings = modelWarnings(model);
    return reply
      .code(201)
      .header('location', `/v1/models/${model.id}`)
      .send({ ...model, ...(warnings.length > 0 && { warnings }) });
  } catch (error) {
    leaveRestUnread(reply);
    throw error;
  }
};

export const listModels: OperationHandler<'listModels'> = async (request) => ({
  ...(await request.records.listModels(request.query)),
  presets: Object.keys(presets),
  families: MODEL_TYPES,
});

/** Fields that `updateModel` can change. */
const CHANGEABLE = ['name', 'description'] as const satisfies (keyof ModelPatch)[];

export const getModel: OperationHandler<'getModel'> = async (request, reply) =>
  sendRecord(reply, await findModel(request.records, request.params.model_id), CHANGEABLE);

export const updateModel: OperationHandler<'updateModel'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { model_id: id } = request.params;
  const changed = await request.records.updateModel(id, patched<Model>(request, CHANGEABLE));
  if (changed === null) throw notFound(id);
  await keepRecord(changed, {
    put: (record) => putModelDocument(objects, record),
    read: () => request.records.getModel(id),
    remove: () => objects.delete([modelDocumentKey(id)]),
  });
  return sendRecord(reply, changed, CHANGEABLE);
};

export const deleteModel: OperationHandler<'deleteModel'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { model_id } = request.params;
  // The record first: a crash in between leaves unreferenced bytes instead of a record without bytes.
  if (!(await request.records.deleteModel(model_id))) throw notFound(model_id);
  await objects.delete([modelDocumentKey(model_id), ...(await keysOf(objects, model_id))]);
  return reply.code(204).send();
};

async function receive(request: OperationRequest<'createModel'>): Promise<Model> {
  const { store, objects, inspector, limits } = request.server.services;
  if (!(request.body instanceof Readable))
    throw new ZerofleetError('body_required', 'the request needs the archive as its body, or a uri');
  if (Number(request.headers['content-length'] ?? 0) > limits.model_bytes) throw tooLarge(limits.model_bytes);
  await requireStorage(store, request.records.project, request.headers['content-length']);
  return storeModel({ store, objects, inspector, log: request.log }, headOf(request), (upload) =>
    upload.receive(uploadBody(request.body), limits.model_bytes),
  );
}

async function copy(
  request: OperationRequest<'createModel'>,
  uri: string,
  signal: AbortSignal,
): Promise<Model> {
  const { store, objects, inspector, sources, limits } = request.server.services;
  if (request.body instanceof Readable)
    throw new ZerofleetError('bad_request', 'send the archive as the body, or name its uri, not both');
  const folder = await BucketModel.find(uri, sources);
  return copyFolder({ store, objects, inspector, limits, log: request.log }, headOf(request), folder, signal);
}

function headOf({ records, query }: OperationRequest<'createModel'>): ModelHead {
  return { project: records.project, name: query.name };
}

async function keysOf(objects: ObjectStore, id: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of objects.list(`${modelKey(id)}/`)) keys.push(key);
  return keys;
}

/** @throws ZerofleetError `model_not_found` */
async function findModel(store: Pick<ModelRecords, 'getModel'>, id: string): Promise<Model> {
  const model = await store.getModel(id);
  if (model === null) throw notFound(id);
  return model;
}

function notFound(id: string): ZerofleetError {
  return new ZerofleetError('model_not_found', `there is no model ${id}`);
}
