/** Requests that this server sends itself while it answers another one. */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest, InjectOptions } from 'fastify';
import inject, { type Response } from 'light-my-request';

const inside = new WeakSet<IncomingMessage>();

/** True if this server has sent the request itself. */
export function isInside({ raw }: Pick<FastifyRequest, 'raw'>): boolean {
  return inside.has(raw);
}

/**
 * Sends a request to this server, and resolves when its answer begins. An aborted signal closes the response at any
 * time, as a client that leaves does, and so does who destroys the answer's stream.
 * @throws Error if the response was closed before
 */
export async function sendInside(
  server: FastifyInstance,
  options: Omit<InjectOptions, 'signal' | 'payloadAsStream'>,
  signal: AbortSignal,
): Promise<Response> {
  const answer = await inject(
    (request, response) => {
      inside.add(request);
      const leave = () => void response.destroy();
      if (signal.aborted) leave();
      signal.addEventListener('abort', leave, { once: true });
      server.routing(request, response);
    },
    { ...options, payloadAsStream: true },
  );
  answer.stream().once('close', () => answer.raw.res.destroy());
  return answer;
}
