import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { projectRoot } from '../../platform/process/root.js';

/** The dashboard: the files of `web/`, with `index.html` at `/`. It uses the HTTP API like any other client. */
export default fp(
  async (app: FastifyInstance) => {
    await app.register(fastifyStatic, {
      root: join(projectRoot(), 'web'),
      // One route per file: any other path is a `route_not_found`.
      wildcard: false,
      cacheControl: true,
      maxAge: 0,
    });
  },
  { name: 'dashboard', dependencies: ['protection', 'errors'] },
);
