/** The end of a link. */
import { once } from 'node:events';
import t from 'tap';
import { silentServer, worldAtPort } from '../../testing/link-peers.js';
import { Link } from './link.js';
import { connectToLeader } from './tls.js';

t.test('a link whose handshake never completed leaves no connection behind', async (t) => {
  const socket = connectToLeader(worldAtPort(await silentServer(t), 'aa'.repeat(32)));
  const link = new Link(socket);
  link.send({ kind: 'ping' });
  link.close('nothing was heard');
  t.equal(await link.ended, 'nothing was heard');
  await t.rejects(link.secured(), { message: 'nothing was heard' });
  if (!socket.closed) await once(socket, 'close');
});
