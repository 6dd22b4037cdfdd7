/** Admission of members and refusal of other peers. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { encodeFrame } from '../../../platform/process/frames.js';
import { until } from '../../../platform/testing/waiting.js';
import { joined, keptLog, worldAtPort } from '../../testing/link-peers.js';
import { Link } from './link.js';
import { LinkServer } from './link-server.js';
import type { AdmissionLimits } from './newcomers.js';
import { connectToLeader } from './tls.js';

const TOKEN = 'aa'.repeat(32);
const OTHER = 'bb'.repeat(32);
const MEMBER = { world_id: 'w1', worker_id: 'a', token: TOKEN };

async function listening(t: Test, limits?: AdmissionLimits) {
  const { log, lines } = keptLog();
  const server = await LinkServer.listen('127.0.0.1', log, limits);
  t.teardown(() => server.close());
  return { server, lines, world: worldAtPort(server.port, TOKEN) };
}

function expectMember(t: Test, server: LinkServer) {
  const waiting = new AbortController();
  t.teardown(() => waiting.abort());
  return server.expect(MEMBER, waiting.signal);
}

/** Waits for the end of a connection, which a reset may precede. */
const closed = async (socket: Socket) =>
  socket.closed || new Promise<void>((resolve) => socket.once('close', () => resolve()));

function plainPeer(t: Test, port: number): Socket {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => undefined).resume();
  t.teardown(() => socket.destroy());
  return socket;
}

t.test('a peer that knows the token is admitted, and can talk', async (t) => {
  const { server, world, lines } = await listening(t, { admission_ms: 1000, max_waiting: 10 });
  const coming = expectMember(t, server);
  const link = await joined(world, 'a');
  const admitted = await coming;
  t.equal(admitted?.host, 'node-x');
  link.send({ kind: 'ready' });
  t.strictSame(await admitted?.link.next(), { kind: 'ready' });
  await sleep(1500);
  link.send({ kind: 'still here' });
  t.strictSame(await admitted?.link.next(), { kind: 'still here' }, 'the limit ends with the admission');
  t.same(lines, []);
});

t.test('a wrong token, another world and another worker are refused, each with a log line', async (t) => {
  const { server, world, lines } = await listening(t);
  void expectMember(t, server);
  await t.rejects(joined({ ...world, token: OTHER }, 'a'));
  await t.rejects(joined({ ...world, world_id: 'w2' }, 'a'));
  await (await joined(world, 'b')).ended;
  await until(() => lines.length === 3);
  t.match(lines, [
    { msg: 'connection refused', world_id: 'w1', reason: 'the TLS handshake failed: binder does not verify' },
    { world_id: 'w2', reason: 'the world is not expected here' },
    { world_id: 'w1', reason: 'the world does not wait for worker b' },
  ]);
  for (const { from } of lines) t.match(from, /^127\.0\.0\.1 \d+$/);
  t.notMatch(JSON.stringify(lines), new RegExp(`${TOKEN}|${OTHER}`));
});

t.test('a member joins once', async (t) => {
  const { server, world } = await listening(t);
  const coming = expectMember(t, server);
  const first = await joined(world, 'a');
  await coming;
  await t.rejects(joined(world, 'a'));
  first.send({ kind: 'ready' });
  t.strictSame(await (await coming)?.link.next(), { kind: 'ready' });
});

for (const [title, bytes] of [
  ['a message that is too long for a newcomer', Buffer.from([0, 0, 0x10, 1])],
  ['no JSON', Buffer.from([0, 0, 0, 1, 0x7b])],
  ['JSON that is no message', encodeFrame({ kind: 'start', rank: 0 })],
  ['a join with a field too many', encodeFrame({ kind: 'join', worker_id: 'a', host: 'h', x: 1 })],
] as const) {
  t.test(`a peer that proves the token and sends ${title} is cut off`, async (t) => {
    const { server, world, lines } = await listening(t);
    void expectMember(t, server);
    const socket = connectToLeader(world);
    const link = new Link(socket);
    await link.secured();
    socket.write(bytes);
    t.match(await link.ended, /closed|ECONNRESET|EPIPE/);
    t.match(lines, [{ world_id: 'w1', reason: /^(a message|worker_id)/ }]);
  });
}

t.test('plain TCP peers are refused: at once when they send data, by the timeout otherwise', async (t) => {
  const { server, lines } = await listening(t, { admission_ms: 500, max_waiting: 10 });
  void expectMember(t, server);
  const talker = plainPeer(t, server.port);
  talker.write(encodeFrame({ kind: 'join', worker_id: 'a', host: 'h' }));
  const silent = plainPeer(t, server.port);
  await Promise.all([closed(talker), closed(silent)]);
  await until(() => lines.length === 2);
  t.match(lines, [
    { reason: /^the TLS handshake failed: [\w ]+$/, world_id: null },
    { reason: 'it joined no world within 500 ms' },
  ]);
});

t.test('a peer that keeps sending a little is refused by the timeout as well', async (t) => {
  const { server, lines } = await listening(t, { admission_ms: 500, max_waiting: 10 });
  // Beginning of a ClientHello of 512 bytes.
  const socket = plainPeer(t, server.port);
  const bytes = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, ...Array(100).fill(3)];
  const trickle = setInterval(() => socket.write(Buffer.from([bytes.shift() ?? 0])), 50);
  t.teardown(() => clearInterval(trickle));
  await closed(socket);
  await until(() => lines.length === 1);
  t.match(lines, [{ reason: 'it joined no world within 500 ms' }]);
});

t.test('a peer that proves the token and joins nothing is refused by the timeout', async (t) => {
  const { server, world, lines } = await listening(t, { admission_ms: 500, max_waiting: 10 });
  void expectMember(t, server);
  const link = new Link(connectToLeader(world));
  await link.secured();
  link.watch({ ping_ms: 50, silence_ms: 60_000 });
  await link.ended;
  t.match(lines, [{ reason: 'it joined no world within 500 ms' }]);
});

t.test(
  'a flood of connections keeps no member out, and neither memory nor the log grows with it',
  async (t) => {
    const { server, world, lines } = await listening(t, { admission_ms: 60_000, max_waiting: 20 });
    const coming = expectMember(t, server);
    const peers = Array.from({ length: 300 }, () => plainPeer(t, server.port));
    await Promise.all(peers.slice(0, 280).map((peer) => closed(peer)));
    const link = await joined(world, 'a');
    t.ok(await coming);
    link.send({ kind: 'ready' });
    t.strictSame(await (await coming)?.link.next(), { kind: 'ready' });
    t.match(lines[0], { reason: 'more than 20 connections have joined no world' });
    t.ok(lines.length < 100, `${lines.length} lines`);
  },
);

t.test('a flood of bytes is cut off at its beginning', async (t) => {
  const { server, lines } = await listening(t);
  const socket = plainPeer(t, server.port);
  const block = Buffer.alloc(64 * 1024, 0x41);
  while (!socket.destroyed && socket.bytesWritten < 64 * 1024 * 1024) {
    socket.write(block);
    await sleep(1);
  }
  t.ok(socket.bytesWritten < 64 * 1024 * 1024, `${socket.bytesWritten} bytes`);
  t.match(lines, [{ reason: /^the TLS handshake failed/ }]);
});

t.test('closing ends every connection', async (t) => {
  const { server, world } = await listening(t);
  const coming = expectMember(t, server);
  const link = await joined(world, 'a');
  await coming;
  const silent = plainPeer(t, server.port);
  await once(silent, 'connect');
  await server.close();
  t.ok(await link.ended);
  await closed(silent);
});
