import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ZerofleetError } from '../../contracts/index.js';
import type { AgentMetrics } from '../../worker/metrics/agent-metrics.js';

export interface MetricsServer {
  /** `http://host:port/metrics` */
  readonly url: string;
  /** Idempotent. */
  close(): Promise<void>;
}

/**
 * Serves the metrics of an agent to Prometheus, and nothing else.
 * @param port 0 picks a free one
 * @throws ZerofleetError `invalid_configuration` when it can't listen there
 */
export async function serveMetrics(
  metrics: AgentMetrics,
  host: string,
  port: number,
): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    metrics.scrape().then(
      ({ type, text }) => response.writeHead(200, { 'content-type': type }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    throw new ZerofleetError(
      'invalid_configuration',
      `the metrics of the agent can't be served on ${host}:${port} (${String(error)}); set ZEROFLEET_METRICS_PORT ` +
        'to a free port, or leave it unset',
    );
  }
  const { port: actual } = addressOf(server.address());
  let closed: Promise<void> | null = null;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actual}/metrics`,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

function addressOf(address: string | AddressInfo | null): AddressInfo {
  if (address === null || typeof address === 'string') throw new Error('a TCP server has no TCP address');
  return address;
}
