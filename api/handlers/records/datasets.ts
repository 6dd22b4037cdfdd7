import type { Readable } from 'node:stream';
import { type Dataset, type DatasetPatch, datasetDocumentKey, datasetKey } from '../../../contracts/index.js';
import { putDatasetDocument } from '../../../state/index.js';
import { keepRecord, patched } from '../../access/change-record.js';
import { found, notFound } from '../../access/found.js';
import { copyDataset, receiveDataset, removeDataset } from '../../datasets/store-dataset.js';
import { sendRecord } from '../../http/etag.js';
import { sendObject } from '../../http/send-object.js';
import type { OperationHandler, OperationRequest } from '../types.js';
import { receiveOrCopy } from './receive-or-copy.js';

export const createDataset: OperationHandler<'createDataset'> = async (request, reply) => {
  const { uri } = request.query;
  const dataset = await receiveOrCopy(request, reply, { noun: 'content', uri, receive, copy });
  return reply.code(201).header('location', `/v1/datasets/${dataset.id}`).send(dataset);
};

export const listDatasets: OperationHandler<'listDatasets'> = (request) =>
  request.records.listDatasets(request.query);

/** Fields that `updateDataset` can change. */
const CHANGEABLE = ['name', 'description'] as const satisfies (keyof DatasetPatch)[];

export const getDataset: OperationHandler<'getDataset'> = async (request, reply) =>
  sendRecord(reply, await findDataset(request), CHANGEABLE);

export const getDatasetContent: OperationHandler<'getDatasetContent'> = async (request, reply) => {
  const { id, bytes, digest } = await findDataset(request);
  const sent = { key: datasetKey(id), bytes, sha256: digest.replace('sha256:', '') };
  try {
    return await sendObject(request, reply, sent);
  } catch (error) {
    // It may have been deleted since it was found.
    throw (await request.records.getDataset(id)) === null ? notFound('dataset', id) : error;
  }
};

export const updateDataset: OperationHandler<'updateDataset'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { dataset_id: id } = request.params;
  const update = patched<Dataset>(request, CHANGEABLE);
  const changed = found(await request.records.updateDataset(id, update), 'dataset', id);
  await keepRecord(changed, {
    put: (record) => putDatasetDocument(objects, record),
    read: () => request.records.getDataset(id),
    remove: () => objects.delete([datasetDocumentKey(id)]),
  });
  return sendRecord(reply, changed, CHANGEABLE);
};

export const deleteDataset: OperationHandler<'deleteDataset'> = async (request, reply) => {
  await removeDataset(request.server.services.objects, request.records, request.params.dataset_id);
  return reply.code(204).send();
};

function receive(request: OperationRequest<'createDataset'>, body: Readable): Promise<Dataset> {
  const { name, format = 'text' } = request.query;
  return receiveDataset(request, { name, format }, body, request.headers['content-length']);
}

async function copy(
  request: OperationRequest<'createDataset'>,
  uri: string,
  signal: AbortSignal,
): Promise<Dataset> {
  const { server, records, log, query } = request;
  const { project } = records;
  const { name, format = 'text' } = query;
  const object = await server.services.sources.find(uri, project);
  return copyDataset({ ...server.services, log }, { project, name, format }, object, signal);
}

/** @throws ZerofleetError `dataset_not_found` */
async function findDataset({
  records,
  params,
}: Pick<OperationRequest<'getDataset'>, 'records' | 'params'>): Promise<Dataset> {
  const { dataset_id: id } = params;
  return found(await records.getDataset(id), 'dataset', id);
}
