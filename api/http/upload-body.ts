import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';

/**
 * The body of an upload as it arrives; one without any content has no pieces.
 * @throws (while it is read) ZerofleetError `upload_interrupted` when the client goes away or the connection breaks
 */
export async function* uploadBody(body: unknown): AsyncGenerator<Uint8Array> {
  if (!(body instanceof Readable)) return;
  try {
    // Leaving the loop early must not destroy the stream: the socket would go with it, before the error was sent.
    yield* body.iterator({ destroyOnReturn: false });
  } catch (cause) {
    throw new ZerofleetError('upload_interrupted', 'the connection ended before the whole body was there', {
      cause,
    });
  }
}

/** How long what a client still sends is read after an upload was refused. */
const LINGER_MS = 5_000;

/**
 * A refused upload may have gigabytes to come: they are not worth reading to keep the connection. The connection is closed
 * for writing with the answer, and what is on its way is dropped until the client closes as well, for five seconds at most:
 * closed at once, it would be reset, and the client's system would drop the answer (RFC 9112, 9.6).
 */
export function leaveRestUnread(reply: FastifyReply): void {
  reply.header('connection', 'close');
  const { socket } = reply.raw;
  // Node.js calls this once the answer is written.
  if (socket) socket.destroySoon = () => linger(socket, reply.request.raw);
}

function linger(socket: Socket, request: IncomingMessage): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.once('end', () => socket.destroy());
  socket.end();
  request.resume();
}
