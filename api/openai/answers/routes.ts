/** `/chat/completions` and `/completions`: answers of trained models. */
import type { FastifyInstance } from 'fastify';
import { findAnswering } from '../models.js';
import { ownApi } from '../own-api.js';
import { sendAnswer } from './answer.js';
import { chatSample, chatShape, parseChat } from './chat.js';
import { completionSample, completionShape, parseCompletion } from './completions.js';

export async function answerRoutes(app: FastifyInstance): Promise<void> {
  app.post('/chat/completions', async (raw, reply) => {
    const body = parseChat(raw.body);
    const sample = chatSample(body);
    const api = ownApi(raw);
    return sendAnswer(api, { ...(await askedOf(api, body)), sample }, chatShape, { raw, reply });
  });

  app.post('/completions', async (raw, reply) => {
    const body = parseCompletion(raw.body);
    const sample = completionSample(body);
    const api = ownApi(raw);
    return sendAnswer(api, { ...(await askedOf(api, body)), sample }, completionShape, { raw, reply });
  });
}

interface Asking {
  model: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
}

async function askedOf(api: ReturnType<typeof ownApi>, { model, stream, stream_options }: Asking) {
  return {
    model,
    answering: await findAnswering(api, model),
    stream: stream === true,
    include_usage: stream_options?.include_usage === true,
  };
}
