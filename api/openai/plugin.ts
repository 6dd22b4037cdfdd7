/**
 * OpenAI's API, translated. A route is an operation of this server's own API in another form (route-as.ts) and calls
 * the same functions. docs/openai.md lists the supported operations; all others are refused by name.
 */
import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';
import { answerRoutes } from './answers/routes.js';
import { Refusal, sendRefusal } from './errors.js';
import { fileRoutes } from './files.js';
import { graderRoutes } from './graders.js';
import { jobRoutes } from './jobs/routes.js';
import { modelRoutes } from './models.js';
import { uploadRoutes } from './uploads/routes.js';

/** Prefix of all of its paths, with errors in its shape. */
const PREFIX = '/openai';
const TRANSLATED = { isTranslated: true };

/** True if a path belongs to a translated API, also where no route has it. */
export function isTranslatedPath(url: string): boolean {
  return /^\/(openai|tinker)\//.test(url);
}

export default async function openai(app: FastifyInstance): Promise<void> {
  await app.register(
    async (scope) => {
      scope.addHook('onRoute', (route) => {
        route.config = { ...route.config, ...TRANSLATED };
      });
      scope.setErrorHandler(sendRefusal);
      const notFound = { config: TRANSLATED };
      scope.setNotFoundHandler(notFound as object, (request) => {
        const [path] = request.url.split('?', 1);
        const message = `${request.method} ${path} is not supported`;
        throw new Refusal(404, 'not_supported', null, message);
      });
      await scope.register(multipart, {
        limits: { fileSize: Number.POSITIVE_INFINITY, files: 1, fields: 10 },
      });
      for (const routes of [fileRoutes, uploadRoutes, jobRoutes, graderRoutes, modelRoutes, answerRoutes])
        await scope.register(routes, { prefix: '/v1' });
    },
    { prefix: PREFIX },
  );
}
