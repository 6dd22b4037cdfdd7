import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { projectRoot } from '../../platform/process/root.js';
import { registerStatic } from './protection.js';

/** Names of these files have a hash of their content. */
const HASHED = '/assets/';

/**
 * The console: the files that Vite made of `clients/console/`, with `index.html` at `/`. It uses the HTTP API like any
 * other client.
 */
export default fp(
  async (app: FastifyInstance) => {
    await registerStatic(app, async (scope) => {
      await scope.register(fastifyStatic, {
        root: join(projectRoot(), 'clients', 'console', 'build'),
        // One route per file: any other path is a `route_not_found`.
        wildcard: false,
        // Beside each file lie its compressed forms.
        preCompressed: true,
        cacheControl: false,
        setHeaders: (response, path) => {
          const forever = path.includes(HASHED);
          response.header('cache-control', forever ? 'public, max-age=31536000, immutable' : 'no-cache');
        },
      });
    });
  },
  { name: 'console', dependencies: ['protection', 'errors'] },
);
