import { Readable } from 'node:stream';
import { ulid } from 'ulid';
import { type Model, modelDocumentKey, modelKey, presets, ZerofleetError } from '../../contracts/index.js';
import { MODEL_TYPES } from '../../contracts/model/families/index.js';
import { folderUri } from '../../platform/dataset-sources.js';
import type { ModelRecords } from '../../platform/job-store/port.js';
import type { ObjectStore } from '../../platform/object-store/port.js';
import { putModelDocument } from '../../platform/recovery/documents.js';
import { requireStorage } from '../access/storage-quota.js';
import { whileSilent } from '../http/long-request.js';
import { leaveRestUnread, uploadBody } from '../http/upload-body.js';
import { mayBeRecorded } from '../jobs/may-be-recorded.js';
import { tooLarge } from '../models/archive.js';
import { BucketModel } from '../models/bucket-folder.js';
import { ModelUpload, type StoredModel } from '../models/upload.js';
import type { OperationHandler, OperationRequest } from './types.js';

export const createModel: OperationHandler<'createModel'> = async (request, reply) => {
  const { uri } = request.query;
  try {
    const model =
      uri === undefined
        ? await receive(request)
        : await whileSilent(request, reply, (signal) => copy(request, uri, signal));
    return reply.code(201).header('location', `/v1/models/${model.id}`).send(model);
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

export const getModel: OperationHandler<'getModel'> = (request) =>
  findModel(request.records, request.params.model_id);

export const deleteModel: OperationHandler<'deleteModel'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { model_id } = request.params;
  // The record first: a crash in between leaves bytes that nobody can name, not a record without bytes.
  if (!(await request.records.deleteModel(model_id))) throw notFound(model_id);
  await objects.delete([modelDocumentKey(model_id), ...(await keysOf(objects, model_id))]);
  return reply.code(204).send();
};

async function receive(request: OperationRequest<'createModel'>): Promise<Model> {
  const { store, limits } = request.server.services;
  if (!(request.body instanceof Readable))
    throw new ZerofleetError('body_required', 'the request needs the archive as its body, or a uri');
  if (Number(request.headers['content-length'] ?? 0) > limits.model_bytes) throw tooLarge(limits.model_bytes);
  await requireStorage(store, request.records.project, request.headers['content-length']);
  return keep(request, (upload) => upload.receive(uploadBody(request.body), limits.model_bytes));
}

/** Copies the files of a folder of a bucket: what becomes of them later changes no bit of a job. */
async function copy(
  request: OperationRequest<'createModel'>,
  uri: string,
  signal: AbortSignal,
): Promise<Model> {
  const { store, sources, limits } = request.server.services;
  if (request.body instanceof Readable)
    throw new ZerofleetError('bad_request', 'send the archive as the body, or name its uri, not both');
  const names = await sources.list(uri);
  const model = await BucketModel.find({ names, find: (name) => sources.find(`${folderUri(uri)}/${name}`) });
  if (model.bytes > limits.model_bytes) throw tooLarge(limits.model_bytes);
  await requireStorage(store, request.records.project, String(model.bytes));
  return keep(request, async (upload) => ({
    ...(await upload.store(model.files(signal), model.ignored)),
    source: { uri: folderUri(uri) },
  }));
}

/** Stores the files, then the record: the model exists only when all of it is durable. */
async function keep(
  request: OperationRequest<'createModel'>,
  storeFiles: (upload: ModelUpload) => Promise<StoredModel>,
): Promise<Model> {
  const { store, objects } = request.server.services;
  const id = `mdl_${ulid()}`;
  const upload = new ModelUpload(objects, id);
  try {
    const stored = await storeFiles(upload);
    const { project } = request.records;
    const model = { id, project, name: request.query.name, ...stored, created_at: new Date().toISOString() };
    await putModelDocument(objects, model);
    await store.putModel(model);
    return model;
  } catch (error) {
    await objects
      .delete([modelDocumentKey(id)])
      .then(() => (mayBeRecorded(error) ? undefined : upload.discard()))
      .catch((cause: unknown) => request.log.warn({ err: cause, model: id }, 'orphaned files of a model'));
    throw error;
  }
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
