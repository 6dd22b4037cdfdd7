/** Browser session of the console: a cookie that scripts cannot read. */
import { computed, signal } from '@preact/signals';
import type { Me, Scope } from '../../../contracts/types.js';
import { ApiError } from '../../typescript/index.js';
import { bodyOf } from '../../typescript/transport.js';
import { currency } from '../parts/format.js';
import { client, impatient } from './connection.js';

type Session = { state: 'unknown' } | { state: 'out'; reason: string | null } | { state: 'in'; me: Me };

export const session = signal<Session>({ state: 'unknown' });

/** Who is signed in; null for nobody. */
export const me = () => (session.value.state === 'in' ? session.value.me : null);

/** The share of a session that shows one run; null for a session of a key. */
export const share = computed(() => me()?.share ?? null);

/** Reads who is signed in. @throws errors of the client, other than that nobody is */
export async function readSession(): Promise<void> {
  try {
    const me = await client.me();
    currency.value = me.currency;
    session.value = { state: 'in', me };
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error;
    if (session.value.state === 'unknown') session.value = { state: 'out', reason: null };
  }
}

/** Signs in with a key, the token of a share, or the code of a link. @throws errors of the client */
export async function signIn(given: { token: string } | { code: string }): Promise<void> {
  await bodyOf('sign in', client.http.POST('/v1/sessions', { body: given }));
  await readSession();
}

export async function signOut(everywhere: boolean): Promise<void> {
  const { http } = client;
  await bodyOf('sign out', everywhere ? http.DELETE('/v1/sessions') : http.DELETE('/v1/sessions/current'));
  session.value = { state: 'out', reason: null };
}

/** The server no longer knows the session. */
function end(): void {
  if (session.value.state !== 'in') return;
  const reason =
    share.value === null ? 'The session has ended.' : 'The shared link has expired or was revoked.';
  session.value = { state: 'out', reason };
}

/** Returns whether the session has a scope. Views hide actions without it. */
export function may(scope: Scope): boolean {
  if (session.value.state !== 'in') return false;
  const { scopes } = session.value.me;
  return scopes.includes(scope) || (scope !== 'operator' && scopes.includes('admin'));
}

for (const { http } of [client, impatient])
  http.use({
    onResponse: ({ response }) => {
      if (response.status === 401) end();
    },
  });
