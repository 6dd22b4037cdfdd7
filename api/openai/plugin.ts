/**
 * OpenAI's API, translated. A route is an operation of this server's own API in another form (route-as.ts) and calls
 * the same functions. docs/openai.md lists the supported operations; all others are refused by name.
 */
import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';
import { answerRoutes } from './answers/routes.js';
import { sendRefusal } from './errors.js';
import { fileRoutes } from './files.js';
import { graderRoutes } from './graders.js';
import { jobRoutes } from './jobs/routes.js';
import { modelRoutes } from './models.js';
import { PREFIXES, translateRoutes } from './translated.js';
import { uploadRoutes } from './uploads/routes.js';

export default async function openai(app: FastifyInstance): Promise<void> {
  await app.register(
    async (scope) => {
      translateRoutes(scope);
      scope.setErrorHandler((error, request, reply) => sendRefusal(error, request, reply));
      await scope.register(multipart, {
        limits: { fileSize: Number.POSITIVE_INFINITY, files: 1, fields: 10 },
      });
      for (const routes of [fileRoutes, uploadRoutes, jobRoutes, graderRoutes, modelRoutes, answerRoutes])
        await scope.register(routes, { prefix: '/v1' });
    },
    { prefix: PREFIXES.openai },
  );
}
