import t from 'tap';
import { serveMetrics } from './metrics-server.js';

const host = '127.0.0.1';
const metrics = { scrape: async () => ({ type: 'text/plain; version=0.0.4', text: 'slots{pool="p"} 2\n' }) };

t.test('metrics are served in Prometheus format, and nothing else', async (t) => {
  const server = await serveMetrics({ host, port: 0, metrics });
  t.teardown(() => server.close());
  const reply = await fetch(`${server.url}/metrics`);
  t.equal(reply.headers.get('content-type'), 'text/plain; version=0.0.4');
  t.equal(await reply.text(), 'slots{pool="p"} 2\n');
  t.equal((await fetch(server.url)).status, 404);
  t.equal((await fetch(`${server.url}/metrics`, { method: 'POST' })).status, 404);
  const port = Number(new URL(server.url).port);
  await t.rejects(serveMetrics({ host, port, metrics }), { code: 'invalid_configuration' });
  await server.close();
  await server.close();
  await t.rejects(fetch(server.url));
});

t.test('a scrape that fails is a server error', async (t) => {
  const scrape = async () => Promise.reject(new Error('broken'));
  const server = await serveMetrics({ host, port: 0, metrics: { scrape } });
  t.teardown(() => server.close());
  t.equal((await fetch(`${server.url}/metrics`)).status, 500);
});

t.test('health is that of the program', async (t) => {
  let isHealthy = true;
  const server = await serveMetrics({ host, port: 0, metrics, isHealthy: () => isHealthy });
  t.teardown(() => server.close());
  const health = async () => {
    const reply = await fetch(`${server.url}/healthz`);
    return [reply.status, await reply.json()];
  };
  t.same(await health(), [200, { status: 'ok' }]);
  isHealthy = false;
  t.same(await health(), [503, { status: 'stuck' }]);
});
