import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ApiKey, type Scope, ZerofleetError } from '../../contracts/index.js';
import type { ApiKeys } from '../../state/index.js';

const BEARER = /^Bearer +([\x21-\x7e]{1,512}) *$/i;

/** Interval of recording a key's last use: recording each request would cost a durable write. */
const USE_NOTED_EVERY_MS = 300_000;

/**
 * Finds the key of a request, counts the request for it, or for its address if there is none, and checks the key's scopes.
 * @throws ZerofleetError `unauthenticated`, `rate_limited`, `insufficient_scope`
 */
export async function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  scopes: readonly Scope[],
): Promise<void> {
  const { server } = request;
  try {
    request.apiKey = await authenticate(server.services.store, request);
  } finally {
    await server.countRequest(request, reply);
  }
  requireScopes(request.apiKey, scopes);
}

/**
 * Finds the API key of a request. The job store looks it up by its SHA-256 and never stores the key itself.
 * @throws ZerofleetError `unauthenticated`
 */
export async function authenticate(
  keys: Pick<ApiKeys, 'findApiKey' | 'touchApiKey'>,
  request: FastifyRequest,
): Promise<ApiKey> {
  const header = request.headers.authorization;
  const secret = BEARER.exec(header ?? '')?.[1];
  if (secret === undefined) {
    throw new ZerofleetError(
      'unauthenticated',
      header === undefined
        ? 'send an API key as "Authorization: Bearer …"'
        : 'the Authorization header does not have the form "Bearer …"',
    );
  }
  const key = await keys.findApiKey(secret);
  if (key === null) throw new ZerofleetError('unauthenticated', 'the API key is unknown or was revoked');
  if (hasPassed(key.expires_at)) throw new ZerofleetError('unauthenticated', 'the API key has expired');
  if (hasPassed(key.last_used_at, USE_NOTED_EVERY_MS) ?? true) {
    // The request does not wait for this write and succeeds without it.
    keys
      .touchApiKey(secret)
      .catch((error: unknown) => request.log.warn({ err: error }, 'last use of a key not recorded'));
  }
  return key;
}

/** @throws ZerofleetError `insufficient_scope` when the key lacks one of `scopes` */
export function requireScopes(key: ApiKey, scopes: readonly Scope[]): void {
  const missing = scopes.filter((scope) => !allows(key, scope));
  if (missing.length > 0) {
    throw new ZerofleetError('insufficient_scope', `the API key lacks the scope ${missing.join(', ')}`);
  }
}

function allows({ scopes }: ApiKey, scope: Scope): boolean {
  return scopes.includes(scope) || (scope !== 'operator' && scopes.includes('admin'));
}

/** True if a time plus `ms` has passed; null for no time. */
function hasPassed(time: string | null, ms = 0): boolean | null {
  return time === null ? null : Date.parse(time) + ms <= Date.now();
}
