import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { ZerofleetError } from '../../contracts/index.js';

/**
 * What helmet would send, which works it out anew for each answer. Nothing about TLS: that ends in front of this process, which can't
 * know whether the names below it all have it.
 */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'self';object-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'origin-agent-cluster': '?1',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'SAMEORIGIN',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
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
    app.addHook('onRequest', (_request, reply, done) => {
      reply.headers(SECURITY_HEADERS);
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
