import type { ApiKey } from '../../contracts/index.js';
import type { ApiKeys } from './api-keys.js';
import type { LookUps, Principal } from './look-ups.js';
import { SHARE_TOKEN, type Shares } from './shares.js';
import type { Users } from './users.js';

export type Principals = ReturnType<typeof principals>;

export function principals(
  lookUps: LookUps,
  { findApiKey, getApiKey }: Pick<ApiKeys, 'findApiKey' | 'getApiKey'>,
  { findShare, getShare }: Pick<Shares, 'findShare' | 'getShare'>,
  { getUser }: Pick<Users, 'getUser'>,
) {
  return {
    /**
     * Returns the principal of an API key or of the token of a share; null when the secret is unknown. The
     * caller checks whether the principal has expired.
     */
    async findPrincipal(secret: string): Promise<Principal | null> {
      if (secret.startsWith(SHARE_TOKEN)) return findShare(secret);
      return ofKey(await findApiKey(secret));
    },

    /** Returns the principal with this id; null when it is unknown, was revoked or has expired. */
    async getPrincipal(id: string): Promise<Principal | null> {
      if (id.startsWith('shr_')) return getShare(id);
      if (id.startsWith('usr_')) return getUser(id);
      return ofKey(await lookUps.keys.find(id, () => getApiKey(id)));
    },
  };
}

function ofKey(key: ApiKey | null): Principal | null {
  if (key === null) return null;
  const { id, name, project, scopes, requests_per_minute, expires_at } = key;
  return {
    id,
    name,
    project,
    scopes,
    requests_per_minute,
    expires_at,
    api_key: key,
    share: null,
    user: null,
  };
}
