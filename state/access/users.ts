import { createHash } from 'node:crypto';
import { redisCall, type StoreContext } from '../core/context.js';
import type { LookUps } from './look-ups.js';
import type { Principal } from './principals-port.js';
import type { UserInput, Users } from './users-port.js';

/** The alphabet of ids. */
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

export interface UserLookUps {
  getUser(userId: string): Promise<Principal | null>;
}

export function users(context: StoreContext, lookUps: LookUps): Users & UserLookUps {
  const { redis, prefix } = context;

  async function read(id: string): Promise<Principal | null> {
    const { document } = await redisCall(redis.hgetall(`${prefix}:principal:${id}`));
    return document === undefined ? null : JSON.parse(document);
  }

  return {
    async putUser(input, lifeMs) {
      const principal = principalOf(input, lifeMs);
      const call = { user_id: principal.id, document: JSON.stringify(principal), life_ms: lifeMs };
      await lookUps.change('put_user', call);
      return principal;
    },

    getUser: (userId) => lookUps.users.find(userId, () => read(userId)),
  };
}

function principalOf(
  { issuer, subject, name, email, project, scopes }: UserInput,
  lifeMs: number,
): Principal {
  const id = idOf(issuer, subject);
  const expires_at = new Date(Date.now() + lifeMs).toISOString();
  const user = { id, subject, name, email, expires_at };
  return {
    id,
    name,
    project,
    scopes,
    requests_per_minute: null,
    expires_at,
    api_key: null,
    share: null,
    user,
  };
}

/** The same for each sign-in of a user. A subject is unique at its issuer only. */
function idOf(issuer: string, subject: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([issuer, subject]))
    .digest();
  return `usr_${Array.from(digest.subarray(0, 26), (byte) => CROCKFORD[byte % 32]).join('')}`;
}
