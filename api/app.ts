import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { ModelServers } from '../graders/model-servers.js';
import { traceFields } from '../platform/tracing.js';
import { answerClientError } from './http/client-error.js';
import { RequestLog } from './http/request-log.js';
import { traceOf } from './http/request-trace.js';
import { endUnusedConnections } from './http/unused-connections.js';
import { type ApiLimits, DEFAULT_LIMITS } from './limits.js';
import { ApiMetrics } from './metrics/api-metrics.js';
import oidcPlugin from './oidc/plugin.js';
import type { OidcProvider } from './oidc/provider.js';
import { sendRefusal } from './openai/errors.js';
import openai, { isTranslatedPath } from './openai/plugin.js';
import { theContract } from './operations.js';
import audit from './plugins/audit.js';
import bodies from './plugins/bodies.js';
import consolePlugin from './plugins/console.js';
import contract from './plugins/contract.js';
import errors, { sendError } from './plugins/errors.js';
import head from './plugins/head.js';
import idempotency from './plugins/idempotency.js';
import metrics from './plugins/metrics.js';
import protection from './plugins/protection.js';
import reference from './plugins/reference.js';
import services from './plugins/services.js';
import type { ApiServices } from './services.js';
import tinker from './tinker/plugin.js';

type Parts = 'store' | 'objects' | 'samples' | 'exports' | 'edits' | 'addresses' | 'trackers' | 'sources';

interface AppOptions extends Pick<ApiServices, Parts> {
  limits?: Partial<ApiLimits>;
  /** Aborted when shutdown begins, before requests are refused. Default: requests are refused immediately. */
  draining?: AbortSignal;
  /** OpenID provider; none by default. */
  oidc?: OidcProvider | null;
  /** Currency of costs; none by default. */
  currency?: string | null;
  /** Python that runs graders; `python3` by default. */
  graderPython?: string;
  /** Servers whose models graders may ask; none by default. */
  graderServers?: ModelServers;
  /**
   * Number of proxies between clients and the server: the address of a client is in their `X-Forwarded-For`. Default:
   * none.
   */
  trustedProxies?: number;
  /** Request log; without it nothing is logged. */
  log?: FastifyBaseLogger;
}

/** Time for which an unused connection stays open beyond the idle time of one in use. */
const KEEP_ALIVE_EXTRA_MS = 10_000;

/** Returns the HTTP server, not yet listening. It does not own the stores: close the app first, then the stores. */
export function buildApp({
  limits,
  log,
  draining = new AbortController().signal,
  oidc = null,
  currency = null,
  graderPython = 'python3',
  graderServers = new Map(),
  trustedProxies = 0,
  ...parts
}: AppOptions): FastifyInstance {
  const allLimits = { ...DEFAULT_LIMITS, ...limits };
  const app: FastifyInstance = Fastify({
    ...(log === undefined ? { logger: false } : { loggerInstance: log }),
    bodyLimit: allLimits.json_body_bytes,
    trustProxy: (_address, hop) => hop < trustedProxies,
    connectionTimeout: allLimits.idle_connection_ms,
    // A balancer that closes connections after the same time must be the first, or its request meets a closed one.
    keepAliveTimeout: allLimits.idle_connection_ms + KEEP_ALIVE_EXTRA_MS,
    http: {
      headersTimeout: allLimits.headers_timeout_ms,
      // Interval at which Node checks its connections.
      connectionsCheckingInterval: Math.ceil(allLimits.headers_timeout_ms / 4),
    },
    clientErrorHandler: (error, socket) => answerClientError(error, socket, app.log),
    // Every line of a request's log carries its trace.
    childLoggerFactory: (logger, bindings, options, raw) =>
      new RequestLog(logger, (base) => base.child({ ...bindings, ...traceFields(traceOf(raw)) }, options)),
    genReqId: () => `req_${randomUUID()}`,
    // A stream is an open request; it ends when `closing` is aborted.
    forceCloseConnections: 'idle',
    // The services plugin answers requests that arrive during shutdown.
    return503OnClosing: false,
    // No hook runs for a path that cannot be parsed; metrics count it as an unknown route.
    frameworkErrors: (error, request, reply) => {
      const send = isTranslatedPath(request.url) ? sendRefusal : sendError;
      app.countRequest(request, reply).then(
        () => send(error, request, reply),
        (refusal) => send(refusal, request, reply),
      );
    },
    routerOptions: { maxParamLength: 64 },
  });
  endUnusedConnections(app, draining);
  app.register(services, {
    ...parts,
    limits: allLimits,
    contract: theContract(),
    metrics: new ApiMetrics(),
    oidc,
    currency,
    graderPython,
    graderServers,
    draining,
  });
  app.register(errors);
  app.register(head);
  app.register(metrics);
  app.register(protection);
  app.register(audit);
  app.register(bodies);
  app.register(idempotency);
  app.register(contract);
  app.register(openai);
  app.register(tinker);
  app.register(oidcPlugin);
  app.register(consolePlugin);
  app.register(reference);
  return app;
}
