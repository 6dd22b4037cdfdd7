import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { ZerofleetError } from '../../contracts/index.js';

/**
 * What browsers of today heed. Nothing about TLS: that ends in front of this process, which can't know whether the names below it all
 * have it.
 */
const OF_PAGES = {
  'content-security-policy':
    "default-src 'self';object-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** A document that no browser shows as a page; each header is a part of the cost of a small answer. */
const OF_DATA = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
};

/**
 * Security headers, and the number of requests that one key may make in a minute.
 *
 * Each server counts for itself, in its memory. Counting in Redis (which `@fastify/rate-limit` can) would make a durable write of every
 * GET, since Redis syncs each write to disk here. So n servers let a key through up to n times as often, and the count neither needs
 * Redis nor depends on it; a server that can't reach Redis knows no key and lets nobody in.
 */
export default fp(
  async (app: FastifyInstance) => {
    app.addHook('onRequest', (request, reply, done) => {
      reply.headers(request.url.startsWith('/v1/') ? OF_DATA : OF_PAGES);
      done();
    });
    await app.register(rateLimit, {
      max: (request) => request.apiKey?.requests_per_minute ?? app.services.limits.requests_per_minute,
      // RateLimit-Limit, -Remaining and -Reset.
      enableDraftSpec: true,
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
