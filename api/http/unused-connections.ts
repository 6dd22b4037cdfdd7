import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * On shutdown, ends connections that Node would otherwise keep until they time out. These are, first, connections
 * without a request: browsers and clients open them in advance, and Node does not count them as idle. Second, they are
 * connections whose answer ends after the shutdown began, such as streams.
 *
 * While the server drains, the answer to a request is the last of its connection: the client's next request goes to
 * another server. A connection that ends between two requests might lose the second one.
 */
export function endUnusedConnections(app: FastifyInstance, draining: AbortSignal): void {
  const open = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  app.addHook('onRequest', async (_request, reply) => {
    if (draining.aborted) reply.header('connection', 'close');
  });
  app.addHook('preClose', async () => {
    app.server.keepAliveTimeout = 1;
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
  });
}
