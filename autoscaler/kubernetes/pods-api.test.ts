/** Requests to the API server over HTTP, and the cluster that a configuration names. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { findCluster } from './access.js';
import { Connection } from './connection.js';
import { PodsApi } from './pods-api.js';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const status = (code: number, message: string) => JSON.stringify({ kind: 'Status', code, message });

/** A server that gives the answers in order, and a client with the token `secret`. */
async function open(t: Test, ...answers: Answer[]) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      requests.push(`${request.method} ${request.url} ${body}`.trim());
      answers.shift()?.(request, response);
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const dir = t.testdir({
    token: 'secret\n',
    config: configOf(`http://127.0.0.1:${port}`, { tokenFile: 'token' }),
  });
  const verbs: string[] = [];
  const connection = new Connection(await findCluster({ KUBECONFIG: `${dir}/config` }), (verb) =>
    verbs.push(verb),
  );
  t.teardown(() => {
    connection.close();
    server.closeAllConnections();
    server.close();
  });
  return { api: new PodsApi(connection), connection, requests, verbs };
}

function configOf(server: string, user: object): string {
  return JSON.stringify({
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u', namespace: 'ns' } }],
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user }],
  });
}

const PODS = '/api/v1/namespaces/ns/pods';
const SELECTED = 'labelSelector=app.kubernetes.io%2Fmanaged-by%3Dzerofleet-autoscaler';

t.test('lists come in pages', async (t) => {
  const page = (items: object[], next = '') =>
    JSON.stringify({ metadata: { resourceVersion: '7', continue: next }, items });
  const { api, requests, verbs } = await open(
    t,
    (request, response) => {
      t.equal(request.headers.authorization, 'Bearer secret');
      response.end(page([{ a: 1 }], 'more'));
    },
    (_request, response) => response.end(page([{ b: 2 }])),
  );
  t.same(await api.list(), { items: [{ a: 1 }, { b: 2 }], resource_version: '7' });
  t.same(requests, [`GET ${PODS}?${SELECTED}&limit=250`, `GET ${PODS}?${SELECTED}&limit=250&continue=more`]);
  t.same(verbs, ['list', 'list']);
});

t.test('a watch yields changes until the server ends it, or reports an expired version', async (t) => {
  const event = (type: string, version: string) =>
    `${JSON.stringify({ type, object: { metadata: { resourceVersion: version }, name: 'ä' } })}\n`;
  const { api, requests } = await open(
    t,
    (_request, response) => {
      const bytes = Buffer.from(event('ADDED', '8') + event('BOOKMARK', '9'));
      // A character of two bytes is split.
      const middle = bytes.indexOf(0xc3) + 1;
      response.write(bytes.subarray(0, middle));
      setTimeout(() => response.end(bytes.subarray(middle)), 20);
    },
    (_request, response) =>
      response.end(`${JSON.stringify({ type: 'ERROR', object: JSON.parse(status(410, 'expired')) })}\n`),
    (_request, response) => response.socket?.destroy(),
  );
  const { signal } = new AbortController();
  const seen = [];
  for await (const { type, resource_version, object } of api.watch('7', signal))
    seen.push([type, resource_version, object]);
  t.match(seen, [
    ['ADDED', '8', { name: 'ä' }],
    ['BOOKMARK', '9', {}],
  ]);
  t.match(requests[0], 'watch=1&allowWatchBookmarks=true&resourceVersion=7');
  await t.rejects(api.watch('7', signal).next(), {
    name: 'KubernetesError',
    status: 410,
    message: 'expired',
  });
  await t.rejects(api.watch('7', signal).next(), { name: 'KubernetesError', status: 0 });
});

t.test('a connection on which nothing comes counts as lost, before the answer and in it', async (t) => {
  const { connection } = await open(
    t,
    () => undefined,
    (_request, response) => response.write('line\n'),
  );
  const { signal } = new AbortController();
  const lines = (silenceMs: number) => connection.lines('watch', PODS, signal, silenceMs);
  const lost = { name: 'KubernetesError', status: 0 };
  await t.rejects(lines(50).next(), { ...lost, message: /nothing came for 0.05 seconds/ });
  // A loaded machine needs more than the 50 ms for a line.
  const begun = lines(2_000);
  t.equal((await begun.next()).value, 'line');
  await t.rejects(begun.next(), { ...lost, message: /nothing came for 2 seconds/ });
});

t.test('refusals have the words of the server', async (t) => {
  const answer =
    (code: number, text: string): Answer =>
    (_request, response) =>
      response.writeHead(code).end(text);
  const { api, requests } = await open(
    t,
    answer(403, status(403, 'exceeded quota: two')),
    answer(502, '<html>'),
    answer(409, status(409, 'the UID in the precondition')),
    answer(404, status(404, 'not found')),
    answer(200, '{}'),
    answer(200, 'no JSON'),
  );
  await t.rejects(api.create({}), { status: 403, message: 'exceeded quota: two' });
  await t.rejects(api.create({}), { status: 502, message: 'status 502: <html>' });
  t.equal(await api.remove('p', 'u', '3'), false);
  t.equal(await api.remove('p', 'u'), false);
  t.equal(await api.remove('p', 'u'), true);
  t.match(
    requests[2],
    `DELETE ${PODS}/p {"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u","resourceVersion":"3"}}`,
  );
  await t.rejects(api.create({}), { message: /the API server of the cluster: / });
});

t.test('a configuration without a cluster or identity is refused', async (t) => {
  const dir = t.testdir({
    broken: '[',
    empty: '{}',
    other: configOf('http://127.0.0.1', { token: 'x' }).replace('"here"', '"there"'),
    exec: configOf('https://127.0.0.1', { exec: { command: 'aws' } }),
  });
  for (const [file, message] of [
    ['none', /no such file/],
    ['broken', /found no cluster: .*broken/],
    ['empty', /must have required property/],
    ['other', /there is no context there/],
    ['exec', /the user u has neither a token, a tokenFile nor a client certificate/],
  ] as const)
    await t.rejects(findCluster({ KUBECONFIG: `${dir}/${file}` }), {
      code: 'invalid_configuration',
      message,
    });
  await t.rejects(findCluster({ KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }), {
    message: /this pod has no token of a service account/,
  });
});
