import type { ResolvedJobSpec } from '../../../contracts/index.js';
import { findJob } from '../../access/found.js';
import { conditionOf, sendJob } from '../../http/etag.js';
import { deleteJob as remove } from '../../jobs/changes/deletions.js';
import { updateJob as update } from '../../jobs/changes/update-job.js';
import { requireFit } from '../../jobs/require-fit.js';
import type { OperationHandler } from '../types.js';

export const updateJob: OperationHandler<'updateJob'> = async (request, reply) => {
  const { objects } = request.server.services;
  const condition = conditionOf(request.headers['if-match']);
  const stores = {
    store: request.records,
    objects,
    requireFit: (spec: ResolvedJobSpec) => requireFit(request, spec),
  };
  return sendJob(reply, await update(stores, request.params.job_id, request.body, condition));
};

export const deleteJob: OperationHandler<'deleteJob'> = async (request, reply) => {
  const { services } = request.server;
  const { artifacts = false } = request.query;
  const condition = conditionOf(request.headers['if-match']);
  await remove(services, request.records, request.params.job_id, { artifacts, ...condition });
  return reply.code(204).send();
};

export const listJobAttempts: OperationHandler<'listJobAttempts'> = async (request) => {
  const { records: store } = request;
  const job = await findJob(store, request.params.job_id);
  return store.listAttempts(job.id, request.query);
};
