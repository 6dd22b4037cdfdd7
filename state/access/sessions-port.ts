import type { ApiKey } from '../../contracts/index.js';

/** Life of a sign-in code. */
export const SIGN_IN_CODE_MS = 120_000;
/** Life of a session without requests. */
export const SESSION_MS = 7 * 86_400_000;

/** A browser session of an API key. */
export interface BrowserSession {
  /** The key as it is now. The caller checks whether it has expired. */
  key: ApiKey;
  /** Unix time in ms. */
  expires_at: number;
  /** True if the cookie may be sent over HTTPS only. */
  secure: boolean;
}

/** A sign-in code, which is used up, or the id of an API key whose secret the caller has checked. */
export type SignInBy = { code: string } | { key_id: string };

/**
 * Browser sessions of API keys, and the codes that begin them. Only the SHA-256 of codes and tokens is stored. A revocation of the key, and
 * a rotation of it without overlap, end both; a key has at most 100 of each, beyond which those end that would end first.
 */
export interface Sessions {
  /** Accepts `code` once for the key. Returns its end, Unix time in ms. */
  putSignInCode(code: string, keyId: string, lifeMs?: number): Promise<number>;
  /**
   * Begins a session. Uses up the code in the same step, so that of concurrent calls with one code at most one begins a session. Returns null
   * when the code or the key is unknown.
   */
  createSession(
    token: string,
    by: SignInBy,
    options: { secure: boolean; lifeMs?: number },
  ): Promise<BrowserSession | null>;
  /** Returns null when the session has ended, or its key was revoked. */
  findSession(token: string): Promise<BrowserSession | null>;
  /** Sets the rest of a session's life. A session that has ended stays so. */
  renewSession(token: string, lifeMs?: number): Promise<void>;
  endSession(token: string): Promise<void>;
  /** Ends all sessions and sign-in codes of a key. */
  endSessions(keyId: string): Promise<void>;
}
