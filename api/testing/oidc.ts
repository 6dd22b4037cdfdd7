/** A real OpenID provider, and a browser without scripts that signs in there. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Test } from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import type { OidcSettings } from '../oidc/settings.js';

/** Starts `oidc-provider` as a child process. @returns its issuer */
export async function startProvider(t: Pick<Test, 'teardown'>, redirectUri: string): Promise<string> {
  const program = join(projectRoot(), 'test', 'support', 'oidc-provider.mjs');
  // It warns of settings that are for tests only.
  const child = fork(program, [redirectUri], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  t.teardown(async () => {
    const ended = once(child, 'exit');
    child.kill();
    await ended;
  });
  const [{ issuer }] = await once(child, 'message');
  return issuer;
}

export function testSettings(changes: Partial<OidcSettings> = {}): OidcSettings {
  return {
    issuer: 'http://127.0.0.1:9',
    name: 'Example Login',
    client_id: 'zerofleet',
    client_secret: 'secret of the client',
    scopes: 'openid profile email groups',
    roles_claim: 'groups',
    roles: [
      { role: 'admins', project: 'default', scopes: ['admin'] },
      { role: 'ml', project: 'team-b', scopes: ['jobs:read'] },
    ],
    session_ms: 8 * 3_600_000,
    public_url: 'http://zerofleet.test/',
    ...changes,
  };
}

/**
 * Signs in at the provider, or refuses to.
 * @param address with which the sign-in begins
 * @returns the address of zerofleet to which the provider leads
 */
export async function signInAtProvider(address: string, login: string | null): Promise<URL> {
  const { origin } = new URL(address);
  const cookies = new Map<string, string>();
  const send = async (url: URL, form?: Record<string, string>) => {
    const cookie = Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ');
    const body = form && new URLSearchParams(form);
    const reply = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(body && { method: 'POST', body }),
    });
    for (const text of reply.headers.getSetCookie()) {
      const [name = '', value = ''] = text.split(';', 1)[0]?.split(/=(.*)/s) ?? [];
      cookies.set(name, value);
    }
    return reply;
  };
  let at = new URL(address);
  let reply = await send(at);
  while (at.origin === origin) {
    const location = reply.headers.get('location');
    if (location !== null) {
      at = new URL(location, at);
      if (at.origin === origin) reply = await send(at);
      continue;
    }
    const [, prompt] = /name="prompt" value="(\w+)"/.exec(await reply.text()) ?? [];
    if (prompt === undefined) throw new Error(`the provider shows no form: ${reply.status}`);
    reply =
      login === null
        ? await send(new URL(`${at.pathname}/abort`, at))
        : await send(at, { prompt, login, password: 'any' });
  }
  return at;
}
