/**
 * The fine-tuning API of OpenAI, translated: each request becomes requests to this server's own API (own-api.ts), or is an operation of it in
 * another form (uploads/). docs/openai.md has what is supported; what is not is refused by name.
 */
import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';
import { answerRoutes } from './answers/routes.js';
import { Refusal, sendRefusal } from './errors.js';
import { fileRoutes } from './files.js';
import { jobRoutes } from './jobs/routes.js';
import { modelRoutes } from './models.js';
import { uploadRoutes } from './uploads/routes.js';

const PREFIX = '/openai/v1';

export default async function openai(app: FastifyInstance): Promise<void> {
  await app.register(
    async (api) => {
      api.addHook('onRoute', (route) => {
        route.config = { ...route.config, isTranslated: true };
      });
      api.setErrorHandler(sendRefusal);
      api.setNotFoundHandler((request) => {
        const [path] = request.url.split('?', 1);
        const message = `${request.method} ${path} is not supported`;
        throw new Refusal(404, 'not_supported', null, message);
      });
      await api.register(multipart, { limits: { fileSize: Number.POSITIVE_INFINITY, files: 1, fields: 10 } });
      await api.register(fileRoutes);
      await api.register(uploadRoutes);
      await api.register(jobRoutes);
      await api.register(modelRoutes);
      await api.register(answerRoutes);
    },
    { prefix: PREFIX },
  );
}
