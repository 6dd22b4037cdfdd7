import { Readable } from 'node:stream';
import {
  type Dataset,
  type DatasetPatch,
  datasetDocumentKey,
  datasetKey,
  ZerofleetError,
} from '../../../contracts/index.js';
import { putDatasetDocument } from '../../../control/recovery/documents.js';
import type { DatasetRecords } from '../../../state/index.js';
import { keepRecord, patched } from '../../access/change-record.js';
import { requireStorage } from '../../access/storage-quota.js';
import { type DatasetHead, type StoreDatasetDeps, storeDataset } from '../../datasets/store-dataset.js';
import { tooLarge } from '../../datasets/upload.js';
import { sendRecord } from '../../http/etag.js';
import { untilAborted, whileSilent } from '../../http/long-request.js';
import { sendObject } from '../../http/send-object.js';
import { leaveRestUnread, uploadBody } from '../../http/upload-body.js';
import type { OperationHandler, OperationRequest } from '../types.js';

export const createDataset: OperationHandler<'createDataset'> = async (request, reply) => {
  const { uri } = request.query;
  try {
    const dataset =
      uri === undefined
        ? await receive(request)
        : await whileSilent(request, reply, (signal) => copy(request, uri, signal));
    return reply.code(201).header('location', `/v1/datasets/${dataset.id}`).send(dataset);
  } catch (error) {
    leaveRestUnread(reply);
    throw error;
  }
};

export const listDatasets: OperationHandler<'listDatasets'> = (request) =>
  request.records.listDatasets(request.query);

/** Fields that `updateDataset` can change. */
const CHANGEABLE = ['name', 'description'] as const satisfies (keyof DatasetPatch)[];

export const getDataset: OperationHandler<'getDataset'> = async (request, reply) =>
  sendRecord(reply, await findDataset(request.records, request.params.dataset_id), CHANGEABLE);

export const getDatasetContent: OperationHandler<'getDatasetContent'> = async (request, reply) => {
  const { id, bytes, digest } = await findDataset(request.records, request.params.dataset_id);
  const sent = { key: datasetKey(id), bytes, sha256: digest.replace('sha256:', '') };
  try {
    return await sendObject(request, reply, sent);
  } catch (error) {
    // It may have been deleted since it was found.
    throw (await request.records.getDataset(id)) === null ? notFound(id) : error;
  }
};

export const updateDataset: OperationHandler<'updateDataset'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { dataset_id: id } = request.params;
  const changed = await request.records.updateDataset(id, patched<Dataset>(request, CHANGEABLE));
  if (changed === null) throw notFound(id);
  await keepRecord(changed, {
    put: (record) => putDatasetDocument(objects, record),
    read: () => request.records.getDataset(id),
    remove: () => objects.delete([datasetDocumentKey(id)]),
  });
  return sendRecord(reply, changed, CHANGEABLE);
};

export const deleteDataset: OperationHandler<'deleteDataset'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { records: store } = request;
  const { id } = await findDataset(store, request.params.dataset_id);
  // The record first: a crash in between leaves unreferenced bytes instead of a record without bytes.
  await store.deleteDataset(id);
  await objects.delete([datasetDocumentKey(id), datasetKey(id)]);
  return reply.code(204).send();
};

/** Stores the body while it arrives. */
async function receive(request: OperationRequest<'createDataset'>): Promise<Dataset> {
  const { store, limits } = request.server.services;
  if (!(request.body instanceof Readable))
    throw new ZerofleetError('body_required', 'the request needs the content as its body, or a uri');
  if (Number(request.headers['content-length'] ?? 0) > limits.dataset_bytes)
    throw tooLarge(limits.dataset_bytes);
  await requireStorage(store, request.records.project, request.headers['content-length']);
  return storeDataset(depsOf(request), { ...headOf(request), source: null }, uploadBody(request.body));
}

/** Copies an object: later changes of the object affect no job. */
async function copy(
  request: OperationRequest<'createDataset'>,
  uri: string,
  signal: AbortSignal,
): Promise<Dataset> {
  const { store, sources, limits } = request.server.services;
  if (request.body instanceof Readable)
    throw new ZerofleetError('bad_request', 'send the content as the body, or name its uri, not both');
  const object = await sources.find(uri);
  if (object.bytes > limits.dataset_bytes) throw tooLarge(limits.dataset_bytes);
  await requireStorage(store, request.records.project, String(object.bytes));
  const head = { ...headOf(request), source: { uri, etag: object.etag } };
  return storeDataset(depsOf(request), head, untilAborted(object.read(), signal));
}

function depsOf({ server, log }: OperationRequest<'createDataset'>): StoreDatasetDeps {
  return { ...server.services, log };
}

function headOf({ query, records }: OperationRequest<'createDataset'>): Omit<DatasetHead, 'source'> {
  const { name, format = 'text' } = query;
  return { project: records.project, name, format };
}

/** @throws ZerofleetError `dataset_not_found` */
async function findDataset(store: Pick<DatasetRecords, 'getDataset'>, id: string): Promise<Dataset> {
  const dataset = await store.getDataset(id);
  if (dataset === null) throw notFound(id);
  return dataset;
}

function notFound(id: string): ZerofleetError {
  return new ZerofleetError('dataset_not_found', `there is no dataset ${id}`);
}
