import { createHash } from 'node:crypto';
import type { Scope, SignedInUser } from '../../contracts/index.js';
import { indexKey, redisCall, type StoreContext, serverTime } from '../core/context.js';
import type { LookUps, Principal } from './look-ups.js';

/** A user as the OpenID provider describes them, and their rights. */
export interface UserInput {
  issuer: string;
  subject: string;
  name: string;
  email: string | null;
  project: string;
  scopes: readonly Scope[];
}

/** The alphabet of ids. */
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Users of an OpenID provider, in Redis only, until the end of their last sign-in. */
export type Users = ReturnType<typeof users>;

export function users(context: StoreContext, lookUps: LookUps) {
  const { redis, prefix } = context;

  async function read(id: string): Promise<Principal | null> {
    const { document } = await redisCall(redis.hgetall(`${prefix}:principal:${id}`));
    return document === undefined ? null : JSON.parse(document);
  }

  return {
    /** Records a user who has signed in. Rights of an earlier sign-in are replaced, also for its sessions. */
    async putUser(input: UserInput, lifeMs: number): Promise<Principal> {
      const principal = principalOf(input, await serverTime(context), lifeMs);
      const { id: userId, project } = principal;
      const call = { user_id: userId, project, document: JSON.stringify(principal), life_ms: lifeMs };
      await lookUps.change('put_user', call);
      return principal;
    },

    /** Returns the users of a project whose sign-in has not ended, the newest sign-in first. */
    async listUsers(project: string): Promise<SignedInUser[]> {
      const now = await serverTime(context);
      const ids = await redisCall(
        redis.zrange(indexKey(context, project, 'user-ids'), now, '+inf', 'BYSCORE'),
      );
      const users = await Promise.all(
        ids.map(async (id): Promise<SignedInUser[]> => {
          const principal = await read(id);
          const numSessions = await redisCall(redis.zcount(`${prefix}:sessions:${id}`, now, '+inf'));
          if (!principal?.user) return [];
          return [{ user: principal.user, scopes: [...principal.scopes], num_sessions: numSessions }];
        }),
      );
      return users.flat().sort((a, b) => b.user.signed_in_at.localeCompare(a.user.signed_in_at));
    },

    /** Returns null when the user is unknown, or the sign-in has ended. */
    getUser: (userId: string): Promise<Principal | null> => lookUps.users.find(userId, () => read(userId)),
  };
}

function principalOf(
  { issuer, subject, name, email, project, scopes }: UserInput,
  now: number,
  lifeMs: number,
): Principal {
  const id = idOf(issuer, subject);
  const expiresAt = new Date(now + lifeMs).toISOString();
  const user = { id, subject, name, email, signed_in_at: new Date(now).toISOString(), expires_at: expiresAt };
  return {
    id,
    name,
    project,
    scopes,
    requests_per_minute: null,
    expires_at: expiresAt,
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
