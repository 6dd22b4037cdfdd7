import { conditionOf, sendJob } from '../../http/etag.js';
import * as control from '../../jobs/changes/control-job.js';
import type { OperationHandler } from '../types.js';

export const cancelJob: OperationHandler<'cancelJob'> = async (request, reply) => {
  const condition = conditionOf(request.headers['if-match']);
  return sendJob(reply.code(202), await control.cancelJob(request, request.params.job_id, condition));
};

export const pauseJob: OperationHandler<'pauseJob'> = async (request, reply) => {
  const condition = conditionOf(request.headers['if-match']);
  return sendJob(reply.code(202), await control.pauseJob(request, request.params.job_id, condition));
};

export const resumeJob: OperationHandler<'resumeJob'> = async (request, reply) => {
  const { ranks } = request.body;
  const options = { ...conditionOf(request.headers['if-match']), ranks };
  return sendJob(reply.code(202), await control.resumeJob(request, request.params.job_id, options));
};

export const resizeJob: OperationHandler<'resizeJob'> = async (request, reply) => {
  const { ranks } = request.body;
  const options = { ...conditionOf(request.headers['if-match']), ranks };
  return sendJob(reply.code(202), await control.resizeJob(request, request.params.job_id, options));
};

export const retryJob: OperationHandler<'retryJob'> = async (request, reply) => {
  const condition = conditionOf(request.headers['if-match']);
  return sendJob(reply.code(202), await control.retryJob(request, request.params.job_id, condition));
};
