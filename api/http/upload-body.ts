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

/** A refused upload may have gigabytes to come: they are not worth reading to keep the connection. */
export function leaveRestUnread(reply: FastifyReply): void {
  reply.header('connection', 'close');
}
