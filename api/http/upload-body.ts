import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';

/**
 * Body of an upload as it arrives; an empty body has no pieces.
 * @throws (while it is read) ZerofleetError `upload_interrupted` when the client disconnects or the connection breaks
 */
export async function* uploadBody(body: unknown): AsyncGenerator<Uint8Array> {
  if (!(body instanceof Readable)) return;
  try {
    // Leaving the loop early must not destroy the stream: its socket would close before the error is sent.
    yield* body.iterator({ destroyOnReturn: false });
  } catch (cause) {
    throw new ZerofleetError('upload_interrupted', 'the connection ended before the whole body arrived', {
      cause,
    });
  }
}

/** Time to read and drop the rest of a refused upload. */
const LINGER_MS = 5_000;

export const JSON_TYPE = 'application/json';
export const PROTOBUF_TYPE = 'application/x-protobuf';

/** The media type of a body, without its parameters; empty if the request names none. */
export function mediaTypeOf({ headers }: Pick<FastifyRequest, 'headers'>): string {
  return headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** True if the request announces a body. */
export function hasBody({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Closes the connection for writing after refusing a request whose body has not arrived, because gigabytes may follow.
 * Every answer that is an error does so. The rest is dropped until the client closes, for five seconds at most. An
 * immediate close would reset the connection, and the client's system would drop the answer (RFC 9112, 9.6).
 */
export function leaveRestUnread(reply: FastifyReply): void {
  const { request } = reply;
  const { complete, readableEnded } = request.raw;
  if (!hasBody(request) || complete || readableEnded) return;
  reply.header('connection', 'close');
  const { socket } = reply.raw;
  // Node.js calls this after the answer is written.
  if (socket) socket.destroySoon = () => linger(socket, request.raw);
}

function linger(socket: Socket, request: IncomingMessage): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.once('end', () => socket.destroy());
  socket.end();
  request.resume();
}
