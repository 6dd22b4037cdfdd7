import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { ZerofleetError } from '../../contracts/index.js';
import { admit } from '../http/authenticate.js';
import { isInside } from '../http/inside.js';

/**
 * Security headers for pages. They do not mention TLS: it ends in front of this process, which cannot know whether all subdomains
 * use it.
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

/** Security headers for data, which no browser shows as a page; each header is part of the cost of a small answer. */
const OF_DATA = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
};

/**
 * Security headers, request id, the key and scopes that a route needs, and the rate limit of one principal (an API key or a share), or of
 * one address without any. All of it comes before the body is read.
 *
 * A translated request counts as one, and so does each request that it becomes, which is not refused for its number: the translated one
 * was admitted.
 *
 * Each server counts in its own memory. Counting in Redis (which `@fastify/rate-limit` can do) would cost a durable write for
 * every GET, because Redis syncs each write to disk here. So n servers together allow up to n times the limit, and the limit is
 * independent of Redis. A server that cannot reach Redis accepts no key.
 */
export default fp(
  async (app: FastifyInstance) => {
    app.addHook('onRequest', async (request, reply) => {
      const { operation, isTranslated = false } = request.routeOptions.config;
      reply.headers(request.url.startsWith('/v1/') || isTranslated ? OF_DATA : OF_PAGES);
      reply.header('x-request-id', request.id);
      if (isTranslated || operation?.scopes != null) await admit(request, reply);
      else await app.countRequest(request, reply);
    });
    await app.register(rateLimit, {
      global: false,
      max: (request) => request.principal?.requests_per_minute ?? app.services.limits.requests_per_minute,
      timeWindow: '1 minute',
      keyGenerator: (request) => request.principal?.id ?? request.ip,
    });
    const count = app.createRateLimit();
    app.decorate('countRequest', async (request, reply) => {
      // Monitoring calls often and has no key.
      if (UNCOUNTED.has(request.routeOptions.url ?? '')) return;
      const counted = await count(request);
      if (counted.isAllowed) return;
      const { max, remaining, ttlInSeconds: seconds, isExceeded } = counted;
      reply.headers({ 'ratelimit-limit': max, 'ratelimit-remaining': remaining, 'ratelimit-reset': seconds });
      if (!isExceeded || isInside(request)) return;
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
     * Counts a request for its principal, or for its address without one, and sets the rate limit headers.
     * @throws ZerofleetError `rate_limited`
     */
    countRequest(request: FastifyRequest, reply: FastifyReply): Promise<void>;
  }
}
