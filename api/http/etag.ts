import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';

/** A strong entity tag: equal bodies have equal tags, and any change of the body changes it. */
export function entityTag(body: string): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
}

/** Whether `If-None-Match` names this tag. Weak comparison, as RFC 9110 asks for there. */
export function matchesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  return header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === tag);
}

/** Sends JSON with its entity tag, or `304` when the client has it already. */
export function sendTagged(reply: FastifyReply, body: unknown, ifNoneMatch?: string): FastifyReply {
  const text = JSON.stringify(body);
  const tag = entityTag(text);
  reply.header('etag', tag);
  if (matchesTag(ifNoneMatch, tag)) return reply.code(304).send();
  return reply.type('application/json; charset=utf-8').send(text);
}
