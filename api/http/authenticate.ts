import type { FastifyReply, FastifyRequest } from 'fastify';
import { type OperationId, type Scope, ZerofleetError } from '../../contracts/index.js';
import {
  type ApiKeys,
  type BrowserSession,
  type Principal,
  type Principals,
  SESSION_MS,
  type Sessions,
  SHARE_TOKEN,
} from '../../state/index.js';
import { type Operation, operationOf } from '../operations.js';
import { requireConsole } from './same-origin.js';
import { sessionToken, setSessionCookie } from './session-cookie.js';
import { requireShared } from './share-rule.js';

const BEARER = /^Bearer +([\x21-\x7e]{1,512}) *$/i;

/** Interval of recording a key's last use: recording each request would cost a durable write. */
const USE_NOTED_EVERY_MS = 300_000;

/** Interval at which a session in use is prolonged, for the same reason. */
const SESSION_PROLONGED_EVERY_MS = 3_600_000;

/** The look-ups of an authentication. */
export type Credentials = Pick<
  ApiKeys & Principals & Sessions,
  'findPrincipal' | 'touchApiKey' | 'findSession'
>;

/** The session of a request, with the token in its cookie. */
export interface RequestSession extends BrowserSession {
  token: string;
}

/** Who sends a request, by a bearer token or by a browser session. */
interface Caller {
  principal: Principal;
  session: RequestSession | null;
}

/**
 * Finds the principal of a request and counts the request for the principal, or for its address if there is no
 * principal. Checks that the principal may do the operation of the route. A translated route without an operation
 * chooses it by the request (`requireOperation`). A request of a browser session must come from the console.
 * @throws ZerofleetError `unauthenticated`, `rate_limited`, `csrf_rejected`, `outside_share`, `job_not_found`,
 *   `insufficient_scope`
 */
export async function admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { server } = request;
  const { operation } = request;
  try {
    const { principal, session } = await authenticate(server.services.store, request);
    request.principal = principal;
    request.session = session;
  } finally {
    await server.countRequest(request, reply);
  }
  if (request.session !== null) {
    requireConsole(request);
    prolong(request, request.session, reply);
  }
  if (operation !== null) requireRights(request, operation, request.params);
}

/**
 * Checks that a request may do an operation, which may be another one than that of its route.
 * @returns the operation
 * @throws ZerofleetError `outside_share`, `job_not_found`, `insufficient_scope`
 */
export function requireOperation(
  request: FastifyRequest,
  operationId: OperationId,
  params: object = {},
): Operation {
  const operation = operationOf(request.server.services.contract, operationId);
  requireRights(request, operation, params);
  return operation;
}

function requireRights({ principal }: FastifyRequest, operation: Operation, params: unknown): void {
  if (principal === null) throw new ZerofleetError('unauthenticated', 'send an API key');
  requireShared(principal, operation, params);
  requireScopes(principal, operation.scopes ?? []);
}

/**
 * Finds the principal of a request. The job store looks keys, shares and sessions up by their SHA-256 and never stores
 * the secrets themselves.
 * @throws ZerofleetError `unauthenticated`
 */
export async function authenticate(credentials: Credentials, request: FastifyRequest): Promise<Caller> {
  const caller = await findCaller(credentials, request);
  const { api_key: key } = caller.principal;
  requireUnexpired(caller.principal);
  if (key !== null && (hasPassed(key.last_used_at, USE_NOTED_EVERY_MS) ?? true)) {
    // The request does not wait for this write and succeeds without it.
    credentials
      .touchApiKey(key.id)
      .catch((error: unknown) => request.log.warn({ err: error }, 'last use of a key not recorded'));
  }
  return caller;
}

/** The headers by which a request is authenticated: requests with the same ones have the same caller. */
export function credentialOf(request: FastifyRequest): string {
  return request.headers.authorization ?? headerKey(request) ?? request.headers.cookie ?? '';
}

/**
 * A request with an `Authorization` header is one of that token, whatever its cookies. The translated API takes keys
 * only.
 */
async function findCaller(credentials: Credentials, request: FastifyRequest): Promise<Caller> {
  const { authorization = headerKey(request) } = request.headers;
  const { isTranslated = false } = request.routeOptions.config;
  const token = authorization === undefined && !isTranslated ? sessionToken(request) : undefined;
  if (token === undefined)
    return { principal: await findPrincipal(credentials, secretOf(authorization)), session: null };
  const session = await credentials.findSession(token);
  if (session === null) throw new ZerofleetError('unauthenticated', 'the session has ended; sign in again');
  return { principal: session.principal, session: { ...session, token } };
}

/** Tinker's clients send the key in a header of their own, and accept only keys that begin with `tml-`. */
function headerKey({ headers, routeOptions }: FastifyRequest): string | undefined {
  const key = routeOptions.config.hasKeyHeader ? headers['x-api-key'] : undefined;
  return typeof key === 'string' ? `Bearer ${key.replace(/^tml-/, '')}` : undefined;
}

function secretOf(authorization: string | undefined): string {
  const secret = BEARER.exec(authorization ?? '')?.[1];
  if (secret !== undefined) return secret;
  throw new ZerofleetError(
    'unauthenticated',
    authorization === undefined
      ? 'send an API key as "Authorization: Bearer …"'
      : 'the Authorization header does not have the form "Bearer …"',
  );
}

/** Finds the principal of a secret, expired or not. @throws ZerofleetError `unauthenticated` */
export async function findPrincipal(
  principals: Pick<Principals, 'findPrincipal'>,
  secret: string,
): Promise<Principal> {
  const principal = await principals.findPrincipal(secret);
  if (principal !== null) return principal;
  const isShare = secret.startsWith(SHARE_TOKEN);
  throw new ZerofleetError(
    'unauthenticated',
    isShare
      ? 'the share link is unknown, has expired or was revoked'
      : 'the API key is unknown or was revoked',
  );
}

/** @throws ZerofleetError `unauthenticated` */
export function requireUnexpired({ expires_at, api_key, share }: Principal): void {
  if (hasPassed(expires_at))
    throw new ZerofleetError(
      'unauthenticated',
      `the ${api_key ? 'API key' : share ? 'share link' : 'session'} has expired`,
    );
}

/** Gives a session that is in use its whole life again. One of a user ends when the user's sign-in does. */
function prolong({ server, log }: FastifyRequest, session: RequestSession, reply: FastifyReply): void {
  if (session.principal.user !== null) return;
  if (session.expires_at - Date.now() > SESSION_MS - SESSION_PROLONGED_EVERY_MS) return;
  setSessionCookie(reply, session.token, session);
  // The request does not wait for this write and succeeds without it; a later one repeats it.
  server.services.store
    .renewSession(session.token)
    .catch((error: unknown) => log.warn({ err: error }, 'session not prolonged'));
}

/** @throws ZerofleetError `insufficient_scope` when the principal lacks one of `scopes` */
export function requireScopes(principal: Rights, scopes: readonly Scope[]): void {
  const missing = scopes.filter((scope) => !allows(principal, scope));
  if (missing.length > 0) {
    throw new ZerofleetError('insufficient_scope', `the API key lacks the scope ${missing.join(', ')}`);
  }
}

type Rights = Pick<Principal, 'scopes'>;

/** Returns whether a principal has a scope. */
export function allows({ scopes }: Rights, scope: Scope): boolean {
  return scopes.includes(scope) || (scope !== 'operator' && scopes.includes('admin'));
}

/** True if a time plus `ms` has passed; null for no time. */
function hasPassed(time: string | null, ms = 0): boolean | null {
  return time === null ? null : Date.parse(time) + ms <= Date.now();
}
