import type { ApiKey } from '../../contracts/index.js';
import type { ApiKeys } from './api-keys-port.js';
import type { LookUps } from './look-ups.js';
import type { Principal, Principals } from './principals-port.js';
import type { ShareLookUps } from './shares.js';
import { SHARE_TOKEN } from './shares-port.js';
import type { UserLookUps } from './users.js';

export function principals(
  lookUps: LookUps,
  { findApiKey, getApiKey }: Pick<ApiKeys, 'findApiKey' | 'getApiKey'>,
  { findShare, getShare }: ShareLookUps,
  { getUser }: UserLookUps,
): Principals {
  return {
    async findPrincipal(secret) {
      if (secret.startsWith(SHARE_TOKEN)) return findShare(secret);
      return ofKey(await findApiKey(secret));
    },

    async getPrincipal(id) {
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
