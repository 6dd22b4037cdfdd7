import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { AddressPolicy } from './addresses.js';
import { post, type Resolve } from './post.js';

const LOCAL = new AddressPolicy(['127.0.0.1/32']);
const message = { headers: { 'webhook-id': 'msg_1' }, body: '{"a":1}' };
/** Longer than any test: only the test that sets a timeout reaches it. */
const NEVER_MS = 60_000;
const noNames: Resolve = async () => [];

async function listen(t: Test, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const http = (t: Test, listener: RequestListener) => listen(t, createServer(listener));
const send = (url: string, resolve = noNames, timeoutMs = NEVER_MS, policy = LOCAL) =>
  post(url, message, { policy, resolve, timeoutMs });

t.test('headers and body arrive at the address that was resolved', async (t) => {
  const seen: unknown[] = [];
  const port = await http(t, async (request, reply) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const { method, url, headers } = request;
    seen.push({
      method,
      url,
      host: headers.host,
      id: headers['webhook-id'],
      body: String(Buffer.concat(pieces)),
    });
    reply.writeHead(204).end();
  });
  const result = await send(`http://hooks.example.com:${port}/in?x=1`, async () => ['127.0.0.1']);
  t.same(result, { status: 204, error: null });
  const host = `hooks.example.com:${port}`;
  t.same(seen, [{ method: 'POST', url: '/in?x=1', host, id: 'msg_1', body: message.body }]);
});

t.test('an address that is not allowed is never connected to', async (t) => {
  let connections = 0;
  const server = createTcpServer(() => {
    connections += 1;
  });
  const port = await listen(t, server);
  const strict = new AddressPolicy([]);
  const refused = { status: null, error: 'address_refused' };
  t.same(
    await send(`https://hooks.example.com:${port}/`, async () => ['127.0.0.1'], NEVER_MS, strict),
    refused,
  );
  t.same(await send(`http://127.0.0.1:${port}/`, noNames, NEVER_MS, strict), refused);
  const mixed: Resolve = async () => ['127.0.0.1', '169.254.169.254'];
  t.same(await send(`http://hooks.example.com:${port}/`, mixed), refused, 'one forbidden address is enough');
  t.equal(connections, 0);
});

t.test('a name is resolved once per message and checked each time', async (t) => {
  let requests = 0;
  const port = await http(t, (_request, reply) => {
    requests += 1;
    reply.end();
  });
  const answers = [['127.0.0.1'], ['127.0.0.2'], ['10.0.0.1']];
  let asked = 0;
  const rebinding: Resolve = async () => answers[asked++] ?? [];
  const url = `http://rebind.example.com:${port}/`;
  t.match(await send(url, rebinding), { status: 200 });
  t.match(await send(url, rebinding), { error: 'address_refused' });
  t.match(await send(url, rebinding), { error: 'address_refused' });
  t.match(await send(url, rebinding), { error: 'name_not_found' });
  t.equal(asked, 4);
  t.equal(requests, 1);
});

t.test('a redirect is not followed', async (t) => {
  const paths: (string | undefined)[] = [];
  const port = await http(t, (request, reply) => {
    paths.push(request.url);
    reply.writeHead(307, { location: `http://127.0.0.1:${port}/elsewhere` }).end();
  });
  t.same(await send(`http://127.0.0.1:${port}/`), { status: 307, error: null });
  t.same(paths, ['/']);
});

t.test('an unresponsive receiver times out', async (t) => {
  const port = await listen(
    t,
    createTcpServer(() => undefined),
  );
  t.same(await send(`http://127.0.0.1:${port}/`, noNames, 50), { status: null, error: 'timeout' });
});

t.test('an endless answer is cut off', async (t) => {
  let closed: () => void = () => undefined;
  const cut = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const port = await http(t, (_request, reply) => {
    reply.writeHead(200);
    const more = () => {
      while (!reply.destroyed && reply.write('x'.repeat(65_536)));
    };
    reply.on('drain', more).on('close', closed);
    more();
  });
  t.same(await send(`http://127.0.0.1:${port}/`), { status: 200, error: null });
  await cut;
});

t.test('invalid HTTP, invalid TLS, and no server', async (t) => {
  const port = await listen(
    t,
    createTcpServer((socket) => socket.end('SSH-2.0-hello\r\n\r\n')),
  );
  t.match(await send(`http://127.0.0.1:${port}/`), { error: 'protocol_error' });
  t.match(await send(`https://127.0.0.1:${port}/`), { error: 'tls_failed' });
  const silent = createTcpServer();
  const gone = await listen(t, silent);
  await new Promise((resolve) => silent.close(resolve));
  t.match(await send(`http://127.0.0.1:${gone}/`), { error: 'connection_failed' });
});

t.test('endless headers are refused', async (t) => {
  const port = await listen(
    t,
    createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}`);
    }),
  );
  t.match(await send(`http://127.0.0.1:${port}/`), { error: 'protocol_error' });
});
