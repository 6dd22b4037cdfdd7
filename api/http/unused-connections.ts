import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * On shutdown, ends connections that Node would otherwise keep until they time out: connections without a request,
 * which browsers and clients open in advance and Node does not count as idle, and connections whose answer ends after
 * that, such as streams.
 */
export function endUnusedConnections(app: FastifyInstance): void {
  const open = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  app.addHook('preClose', async () => {
    app.server.keepAliveTimeout = 1;
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
  });
}
