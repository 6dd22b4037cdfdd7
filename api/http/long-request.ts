import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';

/** Calls back when the response is closed (sent, or its client disconnected), immediately if it is closed already. */
export function onClosed({ raw }: FastifyReply, callback: () => void): void {
  if (raw.destroyed) callback();
  else raw.once('close', callback);
}

/** Counts a request whose body is held in memory, until it is answered. @throws ZerofleetError `rate_limited` */
export function holdRawBody({ server, records }: FastifyRequest, reply: FastifyReply): void {
  onClosed(reply, server.services.rawBodies.begin(records.project));
}

/** Reason of ending the work for a client that has left. */
function clientLeft(): ZerofleetError {
  return new ZerofleetError('upload_interrupted', 'the client disconnected before the answer');
}

/**
 * Runs work during which the connection may stay silent for any time; otherwise it would be closed as idle. The signal
 * is aborted when the client disconnects, the server shuts down, or the work has ended, so that nothing waits for its
 * abort for ever.
 */
export async function whileSilent<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { closing } = request.server.services;
  const gone = new AbortController();
  const leave = () => gone.abort(clientLeft());
  const shutDown = () => gone.abort(new ZerofleetError('shutting_down', 'the server is shutting down'));
  onClosed(reply, leave);
  closing.addEventListener('abort', shutDown, { once: true });
  // An injected request has no connection.
  const { socket }: { socket: Partial<Socket> } = request.raw;
  // 0 where this work is a part of other such work.
  const { timeout = 0 } = socket;
  socket.setTimeout?.(0);
  try {
    return await work(gone.signal);
  } finally {
    socket.setTimeout?.(timeout);
    reply.raw.off('close', leave);
    closing.removeEventListener('abort', shutDown);
    gone.abort();
  }
}

/** Yields the pieces of a request's body; after the last one the connection may stay silent until the answer. */
export async function* thenSilent<T>(pieces: AsyncIterable<T>, { raw }: FastifyRequest): AsyncGenerator<T> {
  yield* pieces;
  // An injected request has no connection. Node.js restores the limit for the connection's next request.
  const { socket }: { socket: Partial<Socket> } = raw;
  socket.setTimeout?.(0);
}

/** Closes the connection again if it stays silent, before the end of its request. */
export function limitSilence({ raw, server }: FastifyRequest): void {
  const { socket }: { socket: Partial<Socket> } = raw;
  socket.setTimeout?.(server.services.limits.idle_connection_ms);
}

/** Yields the pieces until the signal is aborted, then throws its reason. */
export async function* untilAborted<T>(pieces: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  for await (const piece of pieces) {
    signal.throwIfAborted();
    yield piece;
  }
}
