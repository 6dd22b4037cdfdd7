import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../../contracts/index.js';
import { whileSilent } from '../../http/long-request.js';

interface Source<R, T> {
  /** Name of the body in messages. */
  noun: string;
  uri: string | undefined;
  receive(request: R, body: Readable): Promise<T>;
  copy(request: R, uri: string, signal: AbortSignal): Promise<T>;
}

/** Creates a record from the request's body, or from what its `uri` names: from exactly one of them. */
export async function receiveOrCopy<R extends FastifyRequest, T>(
  request: R,
  reply: FastifyReply,
  { noun, uri, receive, copy }: Source<R, T>,
): Promise<T> {
  const body: unknown = request.body;
  if (uri !== undefined && body instanceof Readable)
    throw new ZerofleetError('bad_request', `send the ${noun} as the body, or name its uri, not both`);
  if (uri !== undefined) return whileSilent(request, reply, (signal) => copy(request, uri, signal));
  if (body instanceof Readable) return receive(request, body);
  throw new ZerofleetError('body_required', `the request needs the ${noun} as its body, or a uri`);
}
