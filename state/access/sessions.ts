import { redisCall, type StoreContext } from '../core/context.js';
import type { LookUps, Principal, SessionRecord } from './look-ups.js';
import type { Principals } from './principals.js';
import { hashOf } from './secret-hash.js';

/** Life of a sign-in code. */
export const SIGN_IN_CODE_MS = 120_000;

/** Life of a session without requests. */
export const SESSION_MS = 7 * 86_400_000;

/** A browser session of a principal. */
export interface BrowserSession {
  /** The principal as it is now. The caller checks whether it has expired. */
  principal: Principal;
  /** Unix time in ms. */
  expires_at: number;
  /** True if the cookie may be sent over HTTPS only. */
  secure: boolean;
}

/** A sign-in code, which is used up, or the id of a principal whose secret the caller has checked. */
export type SignInBy = { code: string } | { principal_id: string };

/**
 * Browser sessions of principals, and the codes that begin them. Only the SHA-256 of codes and tokens is
 * stored. A revocation of the principal, and a rotation of a key without overlap, end both. A principal has
 * at most 100 of each. Beyond this number, those end that would end first.
 */
export type Sessions = ReturnType<typeof sessions>;

export function sessions(
  context: StoreContext,
  lookUps: LookUps,
  principals: Pick<Principals, 'getPrincipal'>,
) {
  const { redis, prefix, commands } = context;

  async function read(hash: string): Promise<SessionRecord | null> {
    const { principal_id, expires_at, secure } = await redisCall(redis.hgetall(`${prefix}:session:${hash}`));
    if (principal_id === undefined) return null;
    return { principal_id, expires_at: Number(expires_at), secure: secure === '1' };
  }

  async function withPrincipal(session: SessionRecord | null): Promise<BrowserSession | null> {
    if (session === null) return null;
    const { principal_id, ...rest } = session;
    const principal = await principals.getPrincipal(principal_id);
    return principal && { principal, ...rest };
  }

  return {
    /** Accepts `code` once for the principal. Returns its end, Unix time in ms. */
    async putSignInCode(code: string, principalId: string, lifeMs = SIGN_IN_CODE_MS): Promise<number> {
      const call = { hash: hashOf(code), principal_id: principalId, life_ms: lifeMs };
      return Number((await commands.run('put_sign_in_code', call))[0]);
    },

    /**
     * Begins a session. Uses up the code in the same step, so that of concurrent calls with one code at most
     * one begins a session. Returns null when the code or the principal is unknown.
     */
    async createSession(
      token: string,
      by: SignInBy,
      { secure, lifeMs = SESSION_MS }: { secure: boolean; lifeMs?: number },
    ): Promise<BrowserSession | null> {
      const whose = 'code' in by ? { code_hash: hashOf(by.code) } : by;
      const call = { hash: hashOf(token), ...whose, secure: secure ? '1' : '', life_ms: lifeMs };
      const [created, principalId, expiresAt] = await commands.run('create_session', call);
      if (created !== '1') return null;
      return withPrincipal({ principal_id: String(principalId), expires_at: Number(expiresAt), secure });
    },

    /** Returns null when the session has ended, or its principal was revoked. */
    async findSession(token: string): Promise<BrowserSession | null> {
      const hash = hashOf(token);
      lookUps.watch();
      return withPrincipal(await lookUps.sessions.find(hash, () => read(hash)));
    },

    /** Sets the rest of a session's life. A session that has ended stays so. */
    async renewSession(token: string, lifeMs = SESSION_MS): Promise<void> {
      await lookUps.change('renew_session', { hash: hashOf(token), life_ms: lifeMs });
    },

    async endSession(token: string): Promise<void> {
      await lookUps.change('end_session', { hash: hashOf(token) });
    },

    /** Ends all sessions and sign-in codes of a principal. */
    async endSessions(principalId: string): Promise<void> {
      await lookUps.change('end_sessions', { principal_id: principalId });
    },
  };
}
