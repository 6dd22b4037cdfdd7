import type { Principal } from './principals-port.js';

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
 * Browser sessions of principals, and the codes that begin them. Only the SHA-256 of codes and tokens is stored. A revocation of the
 * principal, and a rotation of a key without overlap, end both; a principal has at most 100 of each, beyond which those end that would end
 * first.
 */
export interface Sessions {
  /** Accepts `code` once for the principal. Returns its end, Unix time in ms. */
  putSignInCode(code: string, principalId: string, lifeMs?: number): Promise<number>;
  /**
   * Begins a session. Uses up the code in the same step, so that of concurrent calls with one code at most one begins a session. Returns null
   * when the code or the principal is unknown.
   */
  createSession(
    token: string,
    by: SignInBy,
    options: { secure: boolean; lifeMs?: number },
  ): Promise<BrowserSession | null>;
  /** Returns null when the session has ended, or its principal was revoked. */
  findSession(token: string): Promise<BrowserSession | null>;
  /** Sets the rest of a session's life. A session that has ended stays so. */
  renewSession(token: string, lifeMs?: number): Promise<void>;
  endSession(token: string): Promise<void>;
  /** Ends all sessions and sign-in codes of a principal. */
  endSessions(principalId: string): Promise<void>;
}
