import { useSignal } from '@preact/signals';
import { type Fault, faultOf } from '../app/connection.js';
import { Notice } from './notice.js';

interface ActionProps {
  label: string;
  act: () => Promise<unknown>;
  kind?: 'primary' | 'danger' | 'quiet';
  /** Asked once before it is done. */
  confirm?: string;
  disabled?: boolean;
}

/** An action on the server while it runs, and its error until it is read. */
export function useAttempt() {
  const busy = useSignal(false);
  const fault = useSignal<Fault | null>(null);
  const attempt = async (act: () => Promise<unknown>) => {
    busy.value = true;
    fault.value = null;
    try {
      await act();
    } catch (error) {
      fault.value = faultOf(error);
    } finally {
      busy.value = false;
    }
  };
  return { busy, fault, attempt };
}

/** A button that does something on the server. Its error stays until it is read. */
export function ActionButton({ label, act, kind, confirm, disabled = false }: ActionProps) {
  const { busy, fault, attempt } = useAttempt();
  const asking = useSignal(false);
  const run = () => {
    asking.value = false;
    void attempt(act);
  };
  const press = () => {
    if (confirm === undefined) run();
    else asking.value = true;
  };
  return (
    <span class="action">
      {asking.value ? (
        <span class="asking">
          <span role="alert">{confirm}</span>
          <button type="button" class="danger" onClick={run} ref={(button) => button?.focus()}>
            {label}
          </button>
          <button type="button" onClick={() => (asking.value = false)}>
            Keep
          </button>
        </span>
      ) : (
        <button
          type="button"
          class={kind}
          disabled={disabled || busy.value}
          aria-busy={busy.value}
          onClick={press}
        >
          {label}
        </button>
      )}
      {fault.value && <Notice fault={fault.value} onClose={() => (fault.value = null)} />}
    </span>
  );
}
