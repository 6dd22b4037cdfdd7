import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fastifySwagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { projectRoot } from '../../platform/process/root.js';
import { registerStatic } from './protection.js';

/** The page sets inline styles and shows images from its style sheet. */
const CONTENT_SECURITY_POLICY = {
  'default-src': "'self'",
  'style-src': ["'self'", "'unsafe-inline'"],
  'img-src': ["'self'", 'data:'],
  'object-src': "'none'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

/** The reference of the HTTP API at `/docs`: Swagger UI with openapi.yaml. Its requests need a key like any other. */
export default fp(
  async (app: FastifyInstance) => {
    // The scope encapsulates both packages' additions.
    await registerStatic(app, async (scope) => {
      const { document } = app.services.contract;
      await scope.register(fastifySwagger, {
        mode: 'static',
        // Under /docs the page is served by the server that it describes.
        specification: { document: { ...document, servers: [{ url: '/' }] } as never },
      });
      const icon = readFileSync(join(projectRoot(), 'clients', 'console', 'build', 'icon.svg'));
      await scope.register(swaggerUi, {
        routePrefix: '/docs',
        staticCSP: CONTENT_SECURITY_POLICY,
        theme: {
          title: 'zerofleet: HTTP API',
          favicon: [
            {
              filename: 'icon.svg',
              rel: 'icon',
              type: 'image/svg+xml',
              sizes: 'any',
              content: icon.toString(),
            },
          ],
        },
        uiConfig: {
          // Without the bar for the URL of another document.
          layout: 'BaseLayout',
          docExpansion: 'list',
          deepLinking: true,
          displayOperationId: true,
          displayRequestDuration: true,
          defaultModelsExpandDepth: 0,
          persistAuthorization: false,
          validatorUrl: null,
        },
      });
    });
  },
  { name: 'reference', dependencies: ['services', 'protection', 'errors'] },
);
