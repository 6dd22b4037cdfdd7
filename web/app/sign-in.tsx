import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Notice } from '../parts/notice.js';
import { type Fault, faultOf } from './connection.js';
import { go } from './router.js';
import { session, signIn } from './session.js';

/** Signs in with the code of a link, or asks for a key. @param code of the link, or null */
export function SignIn({ code }: { code: string | null }) {
  const fault = useSignal<Fault | null>(null);
  const busy = useSignal(code !== null);
  const enter = async (given: Parameters<typeof signIn>[0]) => {
    busy.value = true;
    try {
      await signIn(given);
      if (code !== null) go('#/runs', { replace: true });
    } catch (error) {
      fault.value = faultOf(error);
    } finally {
      busy.value = false;
    }
  };
  useEffect(() => {
    // The code is used up by this, so it need not stay in the address.
    if (code === null) return;
    history.replaceState(null, '', '#/runs');
    void enter({ code });
  }, [code]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    void enter({ token: String(form.get('key')).trim() });
  };
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
        {fault.value && <Notice fault={fault.value} />}
        <button type="submit" class="primary" disabled={busy.value}>
          Sign in
        </button>
      </form>
    </main>
  );
}
