import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Notice } from '../parts/notice.js';
import { client, type Fault, faultOf } from './connection.js';
import { useLoaded } from './loaded.js';
import { AskToReplace, isFree } from './replace-session.js';
import { go, route } from './router.js';
import { session, signIn } from './session.js';

/** A code is used up by its use, so it need not stay in the address. */
const forgetCode = () => history.replaceState(null, '', '#/');

/** Problems with which a sign-in by the provider may end. */
const PROBLEMS: Readonly<Record<string, string>> = {
  provider_unavailable: 'The provider does not answer. Try again, or sign in with a key.',
  sign_in_refused: 'The provider has refused the sign-in.',
  sign_in_mismatch: 'The answer of the provider does not belong to this sign-in. Begin again.',
  sign_in_expired: 'The sign-in took too long. Begin again.',
  role_missing:
    'The provider has signed you in, but no role of yours has access here. Ask your administrator for one.',
};

/**
 * Signs in with the code of a link, or asks for a key. A link may come from anybody: it replaces the session of a key
 * or a user only if the user says so.
 * @param code of the link, or null
 */
export function SignIn({ code }: { code: string | null }) {
  const fault = useSignal<Fault | null>(null);
  const asks = useSignal(code !== null && !isFree());
  const busy = useSignal(code !== null);
  const enter = async (given: Parameters<typeof signIn>[0]) => {
    busy.value = true;
    try {
      await signIn(given);
      if (code !== null) go('#/', { replace: true });
    } catch (error) {
      fault.value = faultOf(error);
    } finally {
      busy.value = false;
    }
  };
  useEffect(() => {
    if (code === null || asks.value) return;
    forgetCode();
    void enter({ code });
  }, []);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    void enter({ token: String(form.get('key')).trim() });
  };
  const methods = useLoaded(() => client.sessions.methods(), []);
  const oidc = methods.value.value?.oidc;
  const problem = route.value.query.get('problem');
  if (code !== null && asks.value)
    return (
      <main class="sign-in">
        <section class="card form">
          <h1>Sign in</h1>
          <AskToReplace
            effect="The link replaces that session, perhaps by one of another account. Continue only if you asked for it."
            label="Sign in by the link"
            act={async () => {
              forgetCode();
              await signIn({ code });
              go('#/', { replace: true });
            }}
          />
        </section>
      </main>
    );
  const reason = session.value.state === 'out' ? session.value.reason : null;
  return (
    <main class="sign-in">
      <form class="card form" onSubmit={submit}>
        <h1>Sign in</h1>
        <p class="muted">
          <code>zerofleet open</code> signs this browser in. Or enter an API key: it is kept by the server,
          not in the page.
        </p>
        {reason && <p class="notice">{reason}</p>}
        <label>
          API key
          <input name="key" type="password" autocomplete="off" placeholder="zf_…" required />
        </label>
        {problem && (
          <p class="notice bad" role="alert">
            {PROBLEMS[problem] ?? PROBLEMS.sign_in_mismatch}
          </p>
        )}
        {fault.value && <Notice fault={fault.value} />}
        <button type="submit" class="primary" disabled={busy.value}>
          Sign in
        </button>
        {oidc && (
          <button type="button" onClick={() => location.assign(oidc.path)}>
            Sign in with {oidc.name}
          </button>
        )}
      </form>
    </main>
  );
}
