import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { type OperationId, ZerofleetError } from '../../contracts/index.js';
import { admit } from '../http/authenticate.js';

/**
 * Security headers for pages. They do not mention TLS: it ends in front of this process, which cannot know whether all
 * subdomains use it.
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
 * Sets security headers and the request id, then checks the key and the scopes that a route needs, and the rate limit.
 * All of it comes before the body is read. The limit is that of a principal (an API key or a share), or of the address
 * of a request without one. Sign-ins have a count of their own for each address: a broken program that sends many
 * refused requests locks nobody out.
 *
 * Each server counts in its own memory. Counting in Redis (which `@fastify/rate-limit` can do) would cost a durable
 * write for every GET, because Redis syncs each write to disk here. So n servers together allow up to n times the
 * limit, and the limit is independent of Redis. A server that cannot reach Redis accepts no key.
 */
export default fp(
  async (app: FastifyInstance) => {
    app.addHook('onRequest', async (request, reply) => {
      const { operation } = request;
      const { isTranslated = false } = request.routeOptions.config;
      reply.headers(request.url.startsWith('/v1/') || isTranslated ? OF_DATA : OF_PAGES);
      reply.header('x-request-id', request.id);
      if (isTranslated || operation?.scopes != null) await admit(request, reply);
      else await app.countRequest(request, reply);
    });
    await app.register(rateLimit, {
      global: false,
      max: (request) => request.principal?.requests_per_minute ?? app.services.limits.requests_per_minute,
      timeWindow: '1 minute',
      keyGenerator: (request) => request.principal?.id ?? addressOf(request),
    });
    const count = app.createRateLimit();
    app.decorate('countRequest', async (request, reply) => {
      if (countOf(request) === 'never') return;
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

/**
 * Count of requests without a principal, where it is not that of their address. Monitoring calls often and has no key.
 */
type CountedAs = 'never' | 'sign-in';

const COUNTED_AS: { readonly [Id in OperationId]?: CountedAs } = {
  getHealth: 'never',
  getReadiness: 'never',
  getSignInMethods: 'sign-in',
  createSession: 'sign-in',
};

function countOf({ operation, routeOptions }: FastifyRequest): CountedAs | undefined {
  return routeOptions.config.countedAs ?? (operation ? COUNTED_AS[operation.operationId] : undefined);
}

function addressOf(request: FastifyRequest): string {
  return countOf(request) === 'sign-in' ? `sign-in ${request.ip}` : request.ip;
}

/** Registers routes of static files, which are not counted. */
export async function registerStatic(
  app: FastifyInstance,
  register: (scope: FastifyInstance) => Promise<void>,
) {
  await app.register(async (scope) => {
    scope.addHook('onRoute', (route) => {
      route.config = { ...route.config, countedAs: 'never' };
    });
    await register(scope);
  });
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Absent: as its operation, or its address. */
    countedAs?: CountedAs;
  }
  interface FastifyInstance {
    /**
     * Counts a request for its principal, or for its address without one, and sets the rate limit headers.
     * @throws ZerofleetError `rate_limited`
     */
    countRequest(request: FastifyRequest, reply: FastifyReply): Promise<void>;
  }
}
