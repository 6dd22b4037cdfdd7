import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ZerofleetError } from '../../contracts/index.js';

interface MetricsServer {
  /** `http://host:port` */
  readonly url: string;
  /** Idempotent. */
  close(): Promise<void>;
}

interface MetricsServerOptions {
  host: string;
  /** 0 picks a free port. */
  port: number;
  metrics: { scrape(): Promise<{ type: string; text: string }> };
  /** Returns false while the program does not do its work; true by default. */
  isHealthy?(): boolean;
}

/**
 * Serves `/metrics` to Prometheus and `/healthz` as a liveness probe: 200, or 503 when unhealthy.
 * @throws ZerofleetError `invalid_configuration` when it can't listen
 */
export async function serveMetrics(options: MetricsServerOptions): Promise<MetricsServer> {
  const { host, port } = options;
  const server = createServer((request, response) => {
    const serve = request.method === 'GET' ? PAGES[request.url ?? ''] : undefined;
    if (serve) serve(options, response);
    else response.writeHead(404).end();
  });
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    throw new ZerofleetError(
      'invalid_configuration',
      `metrics can't be served on ${host}:${port} (${String(error)}); set ZEROFLEET_METRICS_PORT to a free port, or leave it unset`,
    );
  }
  // A listening TCP server has an address of this kind.
  const { port: actual } = server.address() as AddressInfo;
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

type Page = (options: MetricsServerOptions, response: ServerResponse) => void;

const PAGES: Readonly<Record<string, Page>> = {
  '/metrics': ({ metrics }, response) => {
    metrics.scrape().then(
      ({ type, text }) => response.writeHead(200, { 'content-type': type }).end(text),
      () => response.writeHead(500).end(),
    );
  },
  '/healthz': ({ isHealthy }, response) => {
    const ok = isHealthy?.() ?? true;
    const text = JSON.stringify({ status: ok ? 'ok' : 'stuck' });
    response.writeHead(ok ? 200 : 503, { 'content-type': 'application/json' }).end(text);
  },
};
