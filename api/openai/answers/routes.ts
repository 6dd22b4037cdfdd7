/** `/chat/completions` and `/completions`: answers of trained models. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { SampleRequest } from '../../../contracts/index.js';
import { type AnswerForm, sendAnswer } from '../../answers/service.js';
import { invalidDocument } from '../../jobs/check-spec.js';
import { findAnswering } from '../models.js';
import { routeAs } from '../route-as.js';
import { chatSample, chatShape, parseChat } from './chat.js';
import { completionSample, completionShape, parseCompletion } from './completions.js';
import { formOf, type Shape } from './form.js';

export async function answerRoutes(app: FastifyInstance): Promise<void> {
  // A request for an uploaded model is `sampleModel`, which only its body tells.
  const options = routeAs(app, 'sampleCheckpoint');

  app.post('/chat/completions', options, (request, reply) => {
    const body = parseChat(request.body);
    return send({ request, reply }, body, chatSample(body), chatShape);
  });

  app.post('/completions', options, (request, reply) => {
    const body = parseCompletion(request.body);
    return send({ request, reply }, body, completionSample(body), completionShape);
  });
}

interface RequestedAnswer {
  model: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
}

async function send(
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  { model: name, stream, stream_options }: RequestedAnswer,
  sample: SampleRequest,
  shape: Shape,
): Promise<FastifyReply> {
  const model = await findAnswering(request, name);
  const errors = request.server.services.contract.sampleRequestErrors(sample);
  if (errors.length > 0) throw invalidDocument(errors);
  const form: AnswerForm = formOf(shape, {
    request,
    model: name,
    answering: model.named.model,
    sample,
    include_usage: stream_options?.include_usage === true,
  });
  return sendAnswer({ request, reply }, model, { ...sample, stream: stream === true }, form);
}
