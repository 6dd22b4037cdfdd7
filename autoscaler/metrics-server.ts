import { once } from 'node:events';
import { createServer } from 'node:http';
import { ZerofleetError } from '../contracts/index.js';
import type { AutoscalerMetrics } from './metrics.js';

export interface MetricsServer {
  /** `http://host:port` */
  readonly url: string;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface MetricsServerOptions {
  host: string;
  /** 0 picks a free one. */
  port: number;
  metrics: AutoscalerMetrics;
  isHealthy(): boolean;
}

/**
 * Serves `/metrics` to Prometheus and `/healthz` to whoever restarts what does not work: 200, or 503 when it has not looked for long.
 * @throws ZerofleetError `invalid_configuration` when it can't listen there
 */
export async function serveMetrics({
  host,
  port,
  metrics,
  isHealthy,
}: MetricsServerOptions): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (request.method === 'GET' && request.url === '/healthz') {
      const ok = isHealthy();
      const text = JSON.stringify({ status: ok ? 'ok' : 'stuck' });
      response.writeHead(ok ? 200 : 503, { 'content-type': 'application/json' }).end(text);
    } else if (request.method === 'GET' && request.url === '/metrics') {
      metrics.scrape().then(
        ({ type, text }) => response.writeHead(200, { 'content-type': type }).end(text),
        () => response.writeHead(500).end(),
      );
    } else {
      response.writeHead(404).end();
    }
  });
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    throw new ZerofleetError(
      'invalid_configuration',
      `the metrics of the autoscaler can't be served on ${host}:${port} (${String(error)}); set ZEROFLEET_METRICS_PORT ` +
        'to a free port, or leave it unset',
    );
  }
  const address = server.address();
  const actual = typeof address === 'object' ? address?.port : port;
  let closed: Promise<void> | null = null;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actual}`,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
