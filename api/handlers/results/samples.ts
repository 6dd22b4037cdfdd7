import type { FastifyRequest } from 'fastify';
import { found } from '../../access/found.js';
import { type AnswerForm, sendAnswer } from '../../answers/service.js';
import { checkpointModel, uploadedModel } from '../../answers/sources.js';
import { describeError } from '../../http/describe-error.js';
import { toProblem } from '../../http/problem.js';
import { sseMessage } from '../../http/sse.js';
import type { OperationHandler } from '../types.js';

export const sampleCheckpoint: OperationHandler<'sampleCheckpoint'> = async (request, reply) => {
  const { body, params } = request;
  const model = await checkpointModel(request, params.checkpoint_id, body.weights);
  return sendAnswer({ request, reply }, model, body, formFor(request));
};

export const sampleModel: OperationHandler<'sampleModel'> = async (request, reply) => {
  const { body, query, params } = request;
  const { model_id: id } = params;
  const model = found(await request.records.getModel(id), 'model', id);
  return sendAnswer(
    { request, reply },
    uploadedModel(model, query.pool, body.weights),
    body,
    formFor(request),
  );
};

/** Samples, and the events `delta`, `end` and `error`. The end has no texts: the deltas had them. */
function formFor({ id }: Pick<FastifyRequest, 'id'>): AnswerForm {
  return {
    whole: (sample) => sample,
    begin: () => [],
    delta: (data) => sseMessage({ event: 'delta', data }),
    end: ({ choices, ...sample }) => {
      const ends = choices.map(({ index, finish_reason }) => ({ index, finish_reason }));
      return [sseMessage({ event: 'end', data: { ...sample, choices: ends } })];
    },
    error: (error) => sseMessage({ event: 'error', data: toProblem(describeError(error), id) }),
    beginsWithText: false,
  };
}
