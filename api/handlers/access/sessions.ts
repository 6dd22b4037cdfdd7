import { randomBytes } from 'node:crypto';
import { type Session, type SignInCode, ZerofleetError } from '../../../contracts/index.js';
import type { JobStore, SignInBy } from '../../../state/index.js';
import { findPrincipal, requireUnexpired } from '../../http/authenticate.js';
import { requireSameOrigin } from '../../http/same-origin.js';
import {
  cameOverHttps,
  clearSessionCookie,
  sessionToken,
  setSessionCookie,
} from '../../http/session-cookie.js';
import type { OperationHandler, OperationRequest } from '../types.js';
import { describePrincipal } from './projects.js';

export const createSignInCode: OperationHandler<'createSignInCode'> = async (
  request,
  reply,
): Promise<SignInCode> => {
  const { id } = principalOf(request);
  // A script on a page could otherwise take the session of its browser elsewhere.
  if (request.session !== null)
    throw new ZerofleetError('insufficient_scope', 'a session cannot create sign-in codes; send the API key');
  const code = newSecret('code');
  const expiresAt = await request.server.services.store.putSignInCode(code, id);
  reply.code(201).header('cache-control', 'no-store');
  return { code, expires_at: timeText(expiresAt) };
};

export const createSession: OperationHandler<'createSession'> = async (request, reply): Promise<Session> => {
  requireSameOrigin(request);
  const { store } = request.server.services;
  const token = newSecret('session');
  const by = await signInBy(store, request.body);
  const session = await store.createSession(token, by, { secure: cameOverHttps(request) });
  if (session === null)
    throw new ZerofleetError('unauthenticated', 'the sign-in code is unknown, was used or has expired');
  const { principal, expires_at } = session;
  requireUnexpired(principal);
  // The browser forgets its previous session.
  const previous = sessionToken(request);
  if (previous !== undefined) await store.endSession(previous);
  // The audit log has the sign-in as a request of the principal.
  request.principal = principal;
  setSessionCookie(reply, token, session);
  reply.code(201).header('cache-control', 'no-store');
  return {
    me: await describePrincipal(request.server.services, principal),
    expires_at: timeText(expires_at),
  };
};

export const endSession: OperationHandler<'endSession'> = async ({ server, session }, reply) => {
  if (session !== null) await server.services.store.endSession(session.token);
  clearSessionCookie(reply);
  return reply.code(204).send();
};

export const endSessions: OperationHandler<'endSessions'> = async (request, reply) => {
  await request.server.services.store.endSessions(principalOf(request).id);
  clearSessionCookie(reply);
  return reply.code(204).send();
};

/** @throws ZerofleetError `unauthenticated` */
async function signInBy(
  store: JobStore,
  { code, token }: OperationRequest<'createSession'>['body'],
): Promise<SignInBy> {
  if (token === undefined) return { code: code ?? '' };
  const principal = await findPrincipal(store, token);
  requireUnexpired(principal);
  return { principal_id: principal.id };
}

function principalOf({ principal }: Pick<OperationRequest<'endSessions'>, 'principal'>) {
  if (principal === null) throw new ZerofleetError('internal_error', 'a request without a principal');
  return principal;
}

/** 256 random bits with a prefix that logs and secret scanners recognize. */
function newSecret(kind: 'code' | 'session'): string {
  return `zf_${kind}_${randomBytes(32).toString('base64url')}`;
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
