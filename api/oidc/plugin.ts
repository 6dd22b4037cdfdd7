import { randomBytes } from 'node:crypto';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { requireSameOrigin } from '../http/same-origin.js';
import { sessionToken, setSessionCookie } from '../http/session-cookie.js';
import { type OidcProvider, SignInError, type SignInSecrets } from './provider.js';
import { userOf } from './rights.js';

const COOKIE = 'zf_sign_in';
/** Time for the user to sign in at the provider. */
const SIGN_IN_SECONDS = 600;

/**
 * Signs browsers in by an OpenID provider. The secrets of a sign-in are in a cookie of the browser that has begun it,
 * which no script reads, so that another browser cannot end it. What fails leads to the console, which names the
 * problem and offers the key.
 */
export default fp(
  async (app: FastifyInstance) => {
    const { oidc, contract } = app.services;
    if (oidc === null) return;
    app.get('/sign-in/oidc', { config: { countedAs: 'sign-in' } }, (request, reply) =>
      withProblems(request, reply, oidc, () => begin(request, reply, oidc)),
    );
    // The audit log has it like any other sign-in.
    const operation = contract.operations.get('createSession');
    app.get('/sign-in/oidc/callback', { ...(operation && { config: { operation } }) }, (request, reply) =>
      withProblems(request, reply, oidc, () => finish(request, reply, oidc)),
    );
  },
  { name: 'oidc', dependencies: ['services', 'errors', 'protection', 'audit'] },
);

async function begin(
  request: FastifyRequest,
  reply: FastifyReply,
  oidc: OidcProvider,
): Promise<FastifyReply> {
  // Another site could otherwise replace the session of the browser.
  requireSameOrigin(request);
  const { url, secrets } = await oidc.begin();
  const { public_url } = oidc.settings;
  setCookie(reply, public_url, { value: encode(secrets), maxAge: SIGN_IN_SECONDS });
  return reply.redirect(url.href);
}

async function finish(
  request: FastifyRequest,
  reply: FastifyReply,
  oidc: OidcProvider,
): Promise<FastifyReply> {
  const { settings } = oidc;
  const { store } = request.server.services;
  // One answer ends a sign-in, whatever comes of it.
  setCookie(reply, settings.public_url, { value: '', maxAge: 0 });
  const secrets = decode(parseCookie(request.headers.cookie ?? '')[COOKIE]);
  if (secrets === null) throw new SignInError('sign_in_mismatch');
  const user = userOf(
    await oidc.finish(new URL(request.url, 'http://any.invalid').search, secrets),
    settings,
  );
  if (user === null) throw new SignInError('role_missing');
  const principal = await store.putUser(user, settings.session_ms);
  const token = `zf_session_${randomBytes(32).toString('base64url')}`;
  const secure = settings.public_url.startsWith('https:');
  const lifeMs = settings.session_ms;
  await store.createSession(token, { principal_id: principal.id }, { secure, lifeMs });
  const previous = sessionToken(request);
  if (previous !== undefined) await store.endSession(previous);
  request.principal = principal;
  setSessionCookie(reply, token, { secure, lifeMs });
  return reply.redirect(`${settings.public_url}#/runs`);
}

/** Leads to the console with what has failed. The provider's own words are only in the log. */
async function withProblems(
  request: FastifyRequest,
  reply: FastifyReply,
  { settings }: OidcProvider,
  work: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  reply.header('cache-control', 'no-store');
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SignInError)) throw error;
    request.log.warn({ err: error.cause ?? error }, `sign-in failed: ${error.problem}`);
    return reply.redirect(`${settings.public_url}#/sign-in?problem=${error.problem}`);
  }
}

/** The provider's answer is a navigation from another site, which carries no strict cookie. */
function setCookie(reply: FastifyReply, publicUrl: string, cookie: { value: string; maxAge: number }): void {
  const secure = publicUrl.startsWith('https:');
  const path = new URL('sign-in/oidc', publicUrl).pathname;
  const rest = { name: COOKIE, path, httpOnly: true, sameSite: 'lax', secure } as const;
  reply.header('set-cookie', stringifySetCookie({ ...cookie, ...rest }));
}

const encode = (secrets: SignInSecrets) => Object.values(secrets).join('.');

function decode(value = ''): SignInSecrets | null {
  const [state, nonce, verifier, ...others] = value.split('.');
  return state && nonce && verifier && others.length === 0 ? { state, nonce, verifier } : null;
}
