import type { FastifyRequest } from 'fastify';
import { type Scope, ZerofleetError } from '../../contracts/index.js';
import type { ApiKey, ApiKeys } from '../../platform/job-store/port.js';

const BEARER = /^Bearer +([\x21-\x7e]{1,512}) *$/i;

/**
 * Finds the key that a request came with. The job store looks it up by its SHA-256 and never stores the key itself.
 *
 * @throws ZerofleetError `unauthenticated`; `insufficient_scope` when the key lacks one of `scopes`
 */
export async function authenticate(
  keys: ApiKeys,
  request: FastifyRequest,
  scopes: readonly Scope[],
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
  const missing = scopes.filter((scope) => !key.scopes.includes(scope) && !key.scopes.includes('admin'));
  if (missing.length > 0) {
    throw new ZerofleetError('insufficient_scope', `the API key lacks the scope ${missing.join(', ')}`);
  }
  return key;
}
