import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type BrowserSession, SESSION_MS } from '../../state/index.js';

const NAME = 'zf_session';

/** Returns the token of a browser session; undefined without its cookie. */
export function sessionToken({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return headers.cookie === undefined ? undefined : parseCookie(headers.cookie)[NAME];
}

/** Gives the browser a session's token, or gives it anew with the session's whole life. */
export function setSessionCookie(
  reply: FastifyReply,
  token: string,
  { secure, lifeMs = SESSION_MS }: Pick<BrowserSession, 'secure'> & { lifeMs?: number },
): void {
  setCookie(reply, { value: token, secure, maxAge: lifeMs / 1000 });
}

export function clearSessionCookie(reply: FastifyReply): void {
  setCookie(reply, { value: '', secure: false, maxAge: 0 });
}

/** No script reads the cookie, and no other site's request carries it. */
function setCookie(reply: FastifyReply, cookie: { value: string; secure: boolean; maxAge: number }): void {
  const text = stringifySetCookie({ ...cookie, name: NAME, path: '/', httpOnly: true, sameSite: 'strict' });
  reply.header('set-cookie', text);
}

/**
 * True if the browser reached this server over HTTPS. TLS ends in front of this process, but a page names its scheme in
 * the `Origin` of each request that is not GET.
 */
export function cameOverHttps({ headers, protocol }: FastifyRequest): boolean {
  return protocol === 'https' || headers.origin?.startsWith('https://') === true;
}
