import { redisCall, type StoreContext } from '../core/context.js';
import type { LookUps, SessionRecord } from './look-ups.js';
import type { Principals } from './principals-port.js';
import { hashOf } from './secret-hash.js';
import { type BrowserSession, SESSION_MS, type Sessions, SIGN_IN_CODE_MS } from './sessions-port.js';

export function sessions(
  context: StoreContext,
  lookUps: LookUps,
  principals: Pick<Principals, 'getPrincipal'>,
): Sessions {
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
    async putSignInCode(code, principalId, lifeMs = SIGN_IN_CODE_MS) {
      const call = { hash: hashOf(code), principal_id: principalId, life_ms: lifeMs };
      return Number((await commands.run('put_sign_in_code', call))[0]);
    },

    async createSession(token, by, { secure, lifeMs = SESSION_MS }) {
      const whose = 'code' in by ? { code_hash: hashOf(by.code) } : by;
      const call = { hash: hashOf(token), ...whose, secure: secure ? '1' : '', life_ms: lifeMs };
      const [created, principal_id, expires_at] = await commands.run('create_session', call);
      if (created !== '1') return null;
      return withPrincipal({ principal_id: String(principal_id), expires_at: Number(expires_at), secure });
    },

    async findSession(token) {
      const hash = hashOf(token);
      lookUps.watch();
      return withPrincipal(await lookUps.sessions.find(hash, () => read(hash)));
    },

    async renewSession(token, lifeMs = SESSION_MS) {
      await lookUps.change('renew_session', { hash: hashOf(token), life_ms: lifeMs });
    },

    async endSession(token) {
      await lookUps.change('end_session', { hash: hashOf(token) });
    },

    async endSessions(principalId) {
      await lookUps.change('end_sessions', { principal_id: principalId });
    },
  };
}
