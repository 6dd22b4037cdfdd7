import { ulid } from 'ulid';
import { type Dataset, datasetDocumentKey, datasetKey, ZerofleetError } from '../../contracts/index.js';
import type { DatasetRecords } from '../../platform/job-store/port.js';
import { putDatasetDocument } from '../../platform/recovery/documents.js';
import { requireStorage } from '../access/storage-quota.js';
import { storeContent, tooLarge } from '../datasets/upload.js';
import { findJobUsing } from '../datasets/usage.js';
import { leaveRestUnread, uploadBody } from '../http/upload-body.js';
import type { OperationHandler, OperationRequest } from './types.js';

export const createDataset: OperationHandler<'createDataset'> = async (request, reply) => {
  try {
    const dataset = await receive(request);
    return reply.code(201).header('location', `/v1/datasets/${dataset.id}`).send(dataset);
  } catch (error) {
    leaveRestUnread(reply);
    throw error;
  }
};

export const listDatasets: OperationHandler<'listDatasets'> = (request) =>
  request.records.listDatasets(request.query);

export const getDataset: OperationHandler<'getDataset'> = (request) =>
  findDataset(request.records, request.params.dataset_id);

export const deleteDataset: OperationHandler<'deleteDataset'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { records: store } = request;
  const { id } = await findDataset(store, request.params.dataset_id);
  const user = await findJobUsing(store, id);
  if (user !== null)
    throw new ZerofleetError('dataset_in_use', `job ${user} trains on dataset ${id} and has not ended`);
  // The record first: a crash in between leaves bytes that nobody can name, not a record without bytes.
  await store.deleteDataset(id);
  await objects.delete([datasetDocumentKey(id), datasetKey(id)]);
  return reply.code(204).send();
};

/** Stores the body, then the record: the dataset exists only when both are durable. */
async function receive(request: OperationRequest<'createDataset'>): Promise<Dataset> {
  const { store, objects, limits } = request.server.services;
  if (Number(request.headers['content-length'] ?? 0) > limits.dataset_bytes)
    throw tooLarge(limits.dataset_bytes);
  await requireStorage(store, request.records.project, request.headers['content-length']);
  const id = `ds_${ulid()}`;
  const key = datasetKey(id);
  const { name, format = 'text' } = request.query;
  const content = await storeContent(objects, key, uploadBody(request.body), {
    format,
    limit: limits.dataset_bytes,
  });
  const { project } = request.records;
  const dataset: Dataset = { id, project, name, format, ...content, created_at: new Date().toISOString() };
  try {
    await putDatasetDocument(objects, dataset);
    await store.putDataset(dataset);
  } catch (error) {
    await objects
      .delete([datasetDocumentKey(id), key])
      .catch((cause: unknown) => request.log.warn({ err: cause, key }, 'orphaned dataset'));
    throw error;
  }
  return dataset;
}

/** @throws ZerofleetError `dataset_not_found` */
async function findDataset(store: Pick<DatasetRecords, 'getDataset'>, id: string): Promise<Dataset> {
  const dataset = await store.getDataset(id);
  if (dataset === null) throw new ZerofleetError('dataset_not_found', `there is no dataset ${id}`);
  return dataset;
}
