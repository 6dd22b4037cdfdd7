/** Mutual authentication before any message. */
import { once } from 'node:events';
import { connect as connectPlain, createServer } from 'node:net';
import { connect, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { portOf, tappedWire, worldAtPort } from '../../testing/link-peers.js';
import { connectToLeader, serverOptions, tlsReason, worldOf } from './tls.js';

const TOKEN = 'aa'.repeat(32);
const OTHER = 'bb'.repeat(32);

/** Starts a leader that knows only the token of the world `w1`. Returns the connections that it accepted. */
async function leader(t: Test) {
  const taken: TLSSocket[] = [];
  const server = createTlsServer(serverOptions((worldId) => (worldId === 'w1' ? TOKEN : null)));
  server.on('secureConnection', (socket) => {
    taken.push(socket);
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  return { taken, port: await portOf(t, server) };
}

function member(t: Test, port: number, token = TOKEN, worldId = 'w1'): TLSSocket {
  const socket = connectToLeader(worldAtPort(port, token, worldId));
  t.teardown(() => socket.destroy());
  return socket;
}

t.test('two peers that know the token talk over TLS 1.3, and the wire reveals nothing of it', async (t) => {
  const { taken, port } = await leader(t);
  const wire = await tappedWire(t, port);
  const socket = member(t, wire.port);
  await once(socket, 'secureConnect');
  socket.write('a word that nobody else reads');
  const [echo] = await once(socket, 'data');
  t.equal(`${echo}`, 'a word that nobody else reads');
  t.equal(socket.getProtocol(), 'TLSv1.3');
  t.match(socket.getEphemeralKeyInfo(), { type: 'ECDH' }, 'a token that leaks later decrypts no recording');
  t.same(taken.map(worldOf), ['w1']);
  const sent = Buffer.concat(wire.sent);
  t.ok(sent.length > 0);
  for (const word of ['a word', Buffer.from(TOKEN, 'hex'), TOKEN]) t.notOk(sent.includes(word));
});

t.test('a member without the token of a world that is led here is refused', async (t) => {
  const { taken, port } = await leader(t);
  await t.rejects(once(member(t, port, OTHER), 'secureConnect'), { code: /^ERR_SSL_/ });
  await t.rejects(once(member(t, port, TOKEN, 'w2'), 'secureConnect'), { code: /^ERR_SSL_/ });
  const keyless = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await t.rejects(once(keyless, 'secureConnect'), { code: /^ERR_SSL_/ });
  t.same(taken, []);
});

t.test('an earlier session opens no connection without the token', async (t) => {
  const { taken, port } = await leader(t);
  const socket = member(t, port);
  const [session] = await once(socket, 'session');
  const again = connect({ host: '127.0.0.1', port, session, rejectUnauthorized: false });
  await t.rejects(once(again, 'secureConnect'), { code: /^ERR_SSL_/ });
  t.equal(taken.length, 1);
});

t.test('recorded bytes of a member can not be replayed', async (t) => {
  const { taken, port } = await leader(t);
  const wire = await tappedWire(t, port);
  const socket = member(t, wire.port);
  await once(socket, 'secureConnect');
  socket.write('once');
  await once(socket, 'data');
  const before = taken.length;
  const replay = connectPlain({ host: '127.0.0.1', port });
  replay.on('error', () => undefined);
  replay.resume();
  replay.write(Buffer.concat(wire.sent));
  await once(replay, 'close');
  t.equal(taken.length, before);
});

t.test('a connection to a leader that does not know the token is closed', async (t) => {
  const wrong = createTlsServer(serverOptions(() => OTHER));
  const certified = createTlsServer({ key: IMPOSTOR_KEY, cert: IMPOSTOR_CERTIFICATE });
  const echo = createServer((socket) => socket.on('error', () => undefined).pipe(socket));
  const plain = createServer((socket) => {
    socket
      .on('error', () => undefined)
      .resume()
      .write('{"kind":"hello"}');
  });
  for (const [name, server] of Object.entries({ wrong, certified, echo, plain })) {
    const socket = member(t, await portOf(t, server));
    await t.rejects(once(socket, 'secureConnect'), { message: /./ }, name);
    await closed(socket);
  }
});

t.test('a TLS failure reason contains no memory addresses and no source file names', async (t) => {
  const { port } = await leader(t);
  const socket = member(t, port, OTHER);
  const [error] = await once(socket, 'error', { signal: AbortSignal.timeout(60_000) });
  t.match(error.message, /:error:/);
  t.match(tlsReason(error), /^[\w/ ]+$/);
  t.equal(tlsReason(new Error('read ECONNRESET')), 'read ECONNRESET');
});

async function closed(socket: TLSSocket): Promise<void> {
  if (!socket.closed) await once(socket, 'close');
}

/** Key of a server that has a certificate and no token; used only in this test. */
const IMPOSTOR_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgXk+2i0hxeW/b63q3
YCt0pM7cpCXYjphG1xv+d4w9/OehRANCAAQwqTUFJPwnRlnmPDcNsxOn+uW+TUI5
uBwe+8t5cq7zkuwjouISyy3gClP1knbtRtJpfmVsTB8DnKCRIL9pZzht
-----END PRIVATE KEY-----
`;
const IMPOSTOR_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBjzCCATSgAwIBAgIUeq5rkYVMGSNAM5Phyh9YBlLJnNQwCgYIKoZIzj0EAwIw
EzERMA8GA1UEAwwIaW1wb3N0b3IwIBcNMjYxMTI1MjI0NTU5WhgPMjEyNjExMDEy
MjQ1NTlaMBMxETAPBgNVBAMMCGltcG9zdG9yMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEMKk1BST8J0ZZ5jw3DbMTp/rlvk1CObgcHvvLeXKu85LsI6LiEsst4ApT
9ZJ27UbSaX5lbEwfA5ygkSC/aWc4baNkMGIwHQYDVR0OBBYEFJdv1ANfZiye5DA7
PujU2hbshp49MB8GA1UdIwQYMBaAFJdv1ANfZiye5DA7PujU2hbshp49MA8GA1Ud
EwEB/wQFMAMBAf8wDwYDVR0RBAgwBocEfwAAATAKBggqhkjOPQQDAgNJADBGAiEA
0WfRKLrqdpR+CTiLlcz09xuCzTFG9IM09Kb8HpsO8s8CIQCJ7sr4Fe8USnrrDHpe
HtY11Wpbiu+iuUNU12F42oChzw==
-----END CERTIFICATE-----
`;
