import helmet from '@fastify/helmet';
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { ZerofleetError } from '../../contracts/index.js';

/** Security headers, and the number of requests that one key may make. */
export default fp(
  async (app: FastifyInstance) => {
    await app.register(helmet, {
      contentSecurityPolicy: {
        useDefaults: false,
        directives: {
          defaultSrc: ["'self'"],
          objectSrc: ["'none'"],
          baseUri: ["'none'"],
          formAction: ["'none'"],
          frameAncestors: ["'none'"],
        },
      },
      // TLS ends in front of this process, which cannot know whether the names below it all have it.
      hsts: false,
    });
    await app.register(rateLimit, {
      max: app.services.limits.requests_per_minute,
      timeWindow: '1 minute',
      // After the key is known, before the body is read.
      hook: 'preParsing',
      keyGenerator: (request) => request.apiKey?.id ?? request.ip,
      allowList: (request) => request.url === '/healthz' || request.url === '/readyz',
      errorResponseBuilder: (_request, { max, ttl }) =>
        new ZerofleetError(
          'rate_limited',
          `more than ${max} requests in a minute; try again in ${Math.ceil(ttl / 1000)} s`,
        ),
    });
  },
  { name: 'protection', dependencies: ['services'] },
);
