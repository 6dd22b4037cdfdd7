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
 * Security headers, the request's id, and the number of requests that one key may make in a minute, or one address without a key.
 *
 * Each server counts for itself, in its memory. Counting in Redis (which `@fastify/rate-limit` can) would make a durable write of every
 * GET, since Redis syncs each write to disk here. So n servers let a key through up to n times as often, and the count neither needs
 * Redis nor depends on it; a server that can't reach Redis knows no key and lets nobody in.
 */
export default fp(
  async (app: FastifyInstance) => {
    app.addHook('onRequest', async (request, reply) => {
      reply.headers(request.url.startsWith('/v1/') ? OF_DATA : OF_PAGES);
      reply.header('x-request-id', request.id);
      // Others count once it is known whether they have a key, and whose.
      if (request.routeOptions.config.operation?.scopes == null) await app.countRequest(request, reply);
    });
    await app.register(rateLimit, {
      global: false,
      max: (request) => request.apiKey?.requests_per_minute ?? app.services.limits.requests_per_minute,
      timeWindow: '1 minute',
      keyGenerator: (request) => request.apiKey?.id ?? request.ip,
    });
    const count = app.createRateLimit();
    app.decorate('countRequest', async (request, reply) => {
      // Whoever watches a server asks often, and has no key.
      if (UNCOUNTED.has(request.routeOptions.url ?? '')) return;
      const counted = await count(request);
      if (counted.isAllowed) return;
      const { max, remaining, ttlInSeconds: seconds, isExceeded } = counted;
      reply.headers({ 'ratelimit-limit': max, 'ratelimit-remaining': remaining, 'ratelimit-reset': seconds });
      if (!isExceeded) return;
      reply.header('retry-after', seconds);
      const message = `more than ${max} requests in a minute; try again in ${seconds} s`;
      throw new ZerofleetError('rate_limited', message);
    });
  },
  { name: 'protection', dependencies: ['services'] },
);

const UNCOUNTED: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Counts a request for its key, or its address where it has none, and says in the answer what is left.
     * @throws ZerofleetError `rate_limited`
     */
    countRequest(request: FastifyRequest, reply: FastifyReply): Promise<void>;
  }
}
