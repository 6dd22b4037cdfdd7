/** Who gets in, and who does not. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { silentLog } from '../testing/linked-world.js';
import { encodeFrame } from './frames.js';
import { joinWorld } from './handshake.js';
import { Link } from './link.js';
import { LinkServer } from './link-server.js';

const TOKEN = 'aa'.repeat(32);
const OTHER = 'bb'.repeat(32);
const names = { world_id: 'w1', worker_id: 'a', host: 'node-1' };

async function listening(t: Test): Promise<LinkServer> {
  const server = await LinkServer.listen('127.0.0.1', silentLog);
  t.teardown(() => server.close());
  return server;
}

function expectMember(t: Test, server: LinkServer) {
  const waiting = new AbortController();
  t.teardown(() => waiting.abort());
  return server.expect(names, TOKEN, waiting.signal);
}

function connected(t: Test, port: number): { socket: Socket; link: Link } {
  const socket = connect({ host: '127.0.0.1', port });
  const link = new Link(socket);
  t.teardown(() => link.close('the test is over'));
  return { socket, link };
}

t.test('who knows the token gets in, and can talk', async (t) => {
  const server = await listening(t);
  const coming = expectMember(t, server);
  const { link } = connected(t, server.port);
  await joinWorld(link, names, TOKEN);
  const admitted = await coming;
  t.match(admitted?.names, names);
  link.send({ kind: 'ready' });
  t.strictSame(await admitted?.link.next(), { kind: 'ready' });
});

t.test('a wrong token, another world and another worker are refused', async (t) => {
  const server = await listening(t);
  void expectMember(t, server);
  for (const [claim, token] of [
    [names, OTHER],
    [{ ...names, world_id: 'w2' }, TOKEN],
    [{ ...names, worker_id: 'b' }, TOKEN],
  ] as const) {
    const { link } = connected(t, server.port);
    await t.rejects(joinWorld(link, claim, token));
    await link.ended;
  }
});

t.test('a member comes once', async (t) => {
  const server = await listening(t);
  const coming = expectMember(t, server);
  await joinWorld(connected(t, server.port).link, names, TOKEN);
  await coming;
  await t.rejects(joinWorld(connected(t, server.port).link, names, TOKEN));
});

t.test('a recorded proof is of no use: the challenge is another one', async (t) => {
  const server = await listening(t);
  void expectMember(t, server);
  const hello = { kind: 'hello', challenge: '00'.repeat(32) };
  const recorded = await recordJoin(t, hello);
  const { link } = connected(t, server.port);
  await link.next();
  link.send(recorded as object);
  t.match(await link.ended, /closed/);
});

t.test('a leader that does not know the token gets no ranks', async (t) => {
  const impostor = createServer((socket) => {
    const link = new Link(socket);
    link.send({ kind: 'hello', challenge: '00'.repeat(32) });
    link.onMessage(() => link.send({ kind: 'welcome', proof: OTHER }));
  });
  const { link } = connected(t, await portOf(t, impostor));
  await t.rejects(joinWorld(link, names, TOKEN), { code: 'link_refused' });
});

t.test('a leader that sends back what it gets proves nothing', async (t) => {
  const echo = createServer((socket) => {
    const link = new Link(socket);
    link.send({ kind: 'hello', challenge: '00'.repeat(32) });
    link.onMessage((message) => link.send({ kind: 'welcome', proof: (message as { proof: string }).proof }));
  });
  const { link } = connected(t, await portOf(t, echo));
  await t.rejects(joinWorld(link, names, TOKEN), { code: 'link_refused' });
});

for (const [what, bytes] of [
  ['a message that is too long for a stranger', Buffer.from([0, 0, 0x10, 1])],
  ['no JSON', Buffer.from([0, 0, 0, 1, 0x7b])],
  ['JSON that is no message', encodeFrame({ kind: 'start', rank: 0 })],
  [
    'a join with a field too many',
    encodeFrame({ kind: 'join', ...names, challenge: TOKEN, proof: TOKEN, x: 1 }),
  ],
] as const) {
  t.test(`a stranger that sends ${what} is cut off`, async (t) => {
    const server = await listening(t);
    void expectMember(t, server);
    const { socket, link } = connected(t, server.port);
    await once(socket, 'connect');
    socket.write(bytes);
    t.match(await link.ended, /closed|ECONNRESET|EPIPE/);
  });
}

t.test('closing ends every connection', async (t) => {
  const server = await listening(t);
  const { link } = connected(t, server.port);
  await link.next();
  await server.close();
  t.ok(await link.ended);
});

async function portOf(t: Test, server: ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** What a member answers to a challenge. */
async function recordJoin(t: Test, hello: object): Promise<unknown> {
  let record: (message: unknown) => void = () => undefined;
  const recorded = new Promise<unknown>((resolve) => {
    record = resolve;
  });
  const server = createServer((socket) => {
    const link = new Link(socket);
    link.send(hello);
    link.onMessage((message) => {
      record(message);
      link.close('recorded');
    });
  });
  const { link } = connected(t, await portOf(t, server));
  await joinWorld(link, names, TOKEN).catch(() => undefined);
  return recorded;
}
