import type { Readable } from 'node:stream';
import { type Model, type ModelPatch, modelDocumentKey, ZerofleetError } from '../../../contracts/index.js';
import { MODEL_TYPES, modelWarnings, presets } from '../../../job-document/index.js';
import { putModelDocument } from '../../../state/index.js';
import { keepRecord, patched } from '../../access/change-record.js';
import { found } from '../../access/found.js';
import { requireStorage } from '../../access/storage-quota.js';
import { sendRecord } from '../../http/etag.js';
import { uploadBody } from '../../http/upload-body.js';
import { tooLarge } from '../../models/archive.js';
import { BucketModel } from '../../models/bucket-folder.js';
import {
  type CopyFolderDeps,
  copyFolder,
  type ModelHead,
  removeModel,
  storeModel,
} from '../../models/store-model.js';
import { namesOf } from '../../models/upload.js';
import type { OperationHandler, OperationRequest } from '../types.js';
import { receiveOrCopy } from './receive-or-copy.js';

export const createModel: OperationHandler<'createModel'> = async (request, reply) => {
  const { uri } = request.query;
  const model = await receiveOrCopy(request, reply, { noun: 'archive', uri, receive, copy });
  const warnings = modelWarnings(model);
  return reply
    .code(201)
    .header('location', `/v1/models/${model.id}`)
    .send({ ...model, ...(warnings.length > 0 && { warnings }) });
};

export const listModels: OperationHandler<'listModels'> = async (request) => ({
  ...(await request.records.listModels(request.query)),
  presets: Object.keys(presets),
  families: MODEL_TYPES,
});

/** Fields that `updateModel` can change. */
const CHANGEABLE = ['name', 'description'] as const satisfies (keyof ModelPatch)[];

export const getModel: OperationHandler<'getModel'> = async (request, reply) => {
  const { model_id: id } = request.params;
  return sendRecord(reply, found(await request.records.getModel(id), 'model', id), CHANGEABLE);
};

export const updateModel: OperationHandler<'updateModel'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { model_id: id } = request.params;
  const update = patched<Model>(request, CHANGEABLE);
  const changed = found(await request.records.updateModel(id, update), 'model', id);
  await keepRecord(changed, {
    put: (record) => putModelDocument(objects, record),
    read: () => request.records.getModel(id),
    remove: () => objects.delete([modelDocumentKey(id)]),
  });
  return sendRecord(reply, changed, CHANGEABLE);
};

export const deleteModel: OperationHandler<'deleteModel'> = async (request, reply) => {
  await removeModel(request.server.services.objects, request.records, request.params.model_id);
  return reply.code(204).send();
};

async function receive(request: OperationRequest<'createModel'>, body: Readable): Promise<Model> {
  const { store, limits } = request.server.services;
  if (Number(request.headers['content-length'] ?? 0) > limits.model_bytes) throw tooLarge(limits.model_bytes);
  await requireStorage(store, request.records.project, request.headers['content-length']);
  return storeModel(depsOf(request), await headOf(request), (upload) =>
    upload.receive(uploadBody(body), limits.model_bytes),
  );
}

async function copy(
  request: OperationRequest<'createModel'>,
  uri: string,
  signal: AbortSignal,
): Promise<Model> {
  const head = await headOf(request);
  const { sources } = request.server.services;
  const folder = await BucketModel.find(uri, { sources, project: head.project, names: namesOf(head.base) });
  return copyFolder(depsOf(request), head, folder, signal);
}

function depsOf({ server, log }: OperationRequest<'createModel'>): CopyFolderDeps {
  return { ...server.services, log };
}

async function headOf({ records, query }: OperationRequest<'createModel'>): Promise<ModelHead> {
  const { name, base: id } = query;
  const base = id === undefined ? null : found(await records.getModel(id), 'model', id);
  if (base !== null) requireWhole(base);
  return { project: records.project, name, base };
}

function requireWhole({ id, model_type, base }: Model): void {
  if (model_type !== null && base === undefined) return;
  const message =
    base === undefined
      ? `${id} is a tokenizer without weights; name the model that the adapter was trained over`
      : `${id} is an adapter itself; name its base ${base}, or upload the model with that adapter merged`;
  throw new ZerofleetError('model_base_invalid', message);
}
