import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';

/** Calls back when the response is closed (sent, or its client disconnected), and immediately when it is closed already. */
export function onClosed({ raw }: FastifyReply, callback: () => void): void {
  if (raw.destroyed) callback();
  else raw.once('close', callback);
}

/**
 * Does work during which a connection stays silent for as long as it takes; else it would be ended as an idle one. The signal is
 * aborted when the client goes away or the server shuts down.
 */
export async function whileSilent<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { closing, limits } = request.server.services;
  const gone = new AbortController();
  const leave = () =>
    gone.abort(new ZerofleetError('upload_interrupted', 'the client went away before the answer'));
  const shutDown = () => gone.abort(new ZerofleetError('shutting_down', 'the server is shutting down'));
  onClosed(reply, leave);
  closing.addEventListener('abort', shutDown, { once: true });
  // A request that is injected has no connection.
  const { socket }: { socket: Partial<Socket> } = request.raw;
  socket.setTimeout?.(0);
  try {
    return await work(gone.signal);
  } finally {
    socket.setTimeout?.(limits.idle_connection_ms);
    reply.raw.off('close', leave);
    closing.removeEventListener('abort', shutDown);
  }
}

/** The pieces, until the signal is aborted: then its reason is thrown. */
export async function* untilAborted<T>(pieces: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  for await (const piece of pieces) {
    signal.throwIfAborted();
    yield piece;
  }
}
