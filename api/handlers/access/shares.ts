import { randomBytes } from 'node:crypto';
import type { NewShare } from '../../../contracts/index.js';
import { SHARE_TOKEN } from '../../../state/index.js';
import { findJob, notFound } from '../../access/found.js';
import type { OperationHandler } from '../types.js';

const WEEK_SECONDS = 604_800;

export const createShare: OperationHandler<'createShare'> = async (request, reply): Promise<NewShare> => {
  const { expires_in_seconds = WEEK_SECONDS, description = '' } = request.body;
  const { id: jobId } = await findJob(request.records, request.params.job_id);
  const token = `${SHARE_TOKEN}${randomBytes(32).toString('base64url')}`;
  const made = { job_id: jobId, description, life_ms: expires_in_seconds * 1000 };
  const share = await request.server.services.store.createShare(token, made);
  reply.code(201).header('location', `/v1/jobs/${jobId}/shares/${share.id}`);
  reply.header('cache-control', 'no-store');
  return { ...share, token };
};

export const listShares: OperationHandler<'listShares'> = async (request) => {
  const { id } = await findJob(request.records, request.params.job_id);
  return { data: await request.server.services.store.listShares(id) };
};

export const revokeShare: OperationHandler<'revokeShare'> = async (request, reply) => {
  const { job_id, share_id } = request.params;
  const { id } = await findJob(request.records, job_id);
  if (!(await request.server.services.store.revokeShare(id, share_id))) throw notFound('share', share_id);
  return reply.code(204).send();
};
