/** Shutdown of a server while clients send requests. */
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { loadConfig } from '../platform/config/config.js';
import { createLogger } from '../platform/logging/logging.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { type ApiServer, startApi } from './server.js';

const KEY = 'a-key-of-my-own-choice';
const headers = { authorization: `Bearer ${KEY}` };
const CLIENTS = 4;
/** Keeps the clients together below the rate limit of a key. */
const PAUSE_MS = 5;

const redis = await startTestRedis();
t.teardown(() => redis.stop());
const objects = pathToFileURL(t.testdir({})).href;

function startServer(dir: string, drainSeconds: number): Promise<ApiServer> {
  return startApi({
    config: loadConfig({
      ZEROFLEET_PORT: '0',
      ZEROFLEET_DATA_DIR: dir,
      ZEROFLEET_API_KEY: KEY,
      ZEROFLEET_DRAIN_SECONDS: String(drainSeconds),
    }),
    redisUrl: redis.url,
    objectStoreUrl: objects,
    log: createLogger({ level: 'silent', name: 'api' }),
  });
}

/** A service in front of servers, as a cluster's: it forwards connections, not requests, to each server in turn. */
async function startService(servers: ApiServer[]) {
  let next = 0;
  const service = createServer((client) => {
    const { port } = new URL(servers[next++ % servers.length]?.url ?? '');
    const server = connect(Number(port), '127.0.0.1');
    client.pipe(server).pipe(client);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const)
      one.once('error', () => other.destroy());
  }).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const { port } = service.address() as AddressInfo;
  return { service, url: `http://127.0.0.1:${port}` };
}

async function ask(url: string, agent: Agent): Promise<IncomingMessage> {
  const [answer] = (await once(get(url, { agent, headers }), 'response')) as [IncomingMessage];
  await once(answer.resume(), 'end');
  return answer;
}

t.test('a shutdown: first not ready, then no service', async (t) => {
  const api = await startServer(t.testdir({}), 2);
  const status = async (path: string) => (await fetch(api.url + path, { headers })).status;
  t.equal(await status('/readyz'), 200);
  t.equal(await status('/healthz'), 200);
  const closed = api.close();
  t.equal(await status('/healthz'), 503);
  t.equal(await status('/readyz'), 503);
  t.match(await (await fetch(`${api.url}/readyz`)).json(), {
    status: 'not_ready',
    checks: { redis: { ok: true }, object_store: { ok: true } },
  });
  t.equal(await status('/v1/jobs'), 200, 'late requests are served');
  await closed;
  await t.rejects(fetch(`${api.url}/readyz`), 'closed');
});

t.test('a rolling update refuses no request, though a server that ends still gets connections', async (t) => {
  const dir = t.testdir({ old: {}, new: {} });
  const old = await startServer(`${dir}/old`, 3);
  const replacement = await startServer(`${dir}/new`, 3);
  t.teardown(() => replacement.close());
  const servers = [old, replacement];
  const { service, url } = await startService(servers);
  t.teardown(() => service.close());
  const statuses = new Map<number | undefined, number>();
  const ending = new AbortController();
  const clients = Array.from({ length: CLIENTS }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!ending.signal.aborted) {
      const { statusCode } = await ask(`${url}/v1/jobs`, agent);
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
      await sleep(PAUSE_MS);
    }
    agent.destroy();
  });
  await sleep(500);
  const agent = new Agent({ keepAlive: true });
  t.equal((await ask(`${old.url}/v1/jobs`, agent)).headers.connection, 'keep-alive');
  const closed = old.close();
  t.equal((await ask(`${old.url}/v1/jobs`, agent)).headers.connection, 'close', 'its last answer');
  // The cluster needs a moment to take it out of the service.
  await sleep(1_000);
  servers.shift();
  await closed;
  await sleep(500);
  ending.abort();
  await Promise.all(clients);
  agent.destroy();
  t.same([...statuses.keys()], [200]);
});
