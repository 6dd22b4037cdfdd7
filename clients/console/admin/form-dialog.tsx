import { useSignal } from '@preact/signals';
import type { ComponentChildren, InputHTMLAttributes } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { useAttempt } from '../parts/action.js';
import { Copy } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Fields, type Path } from '../parts/fields.js';
import { FieldsContext, Labelled } from '../parts/labelled.js';
import { Notice } from '../parts/notice.js';

interface FormDialogProps {
  title: string;
  submit: string;
  /** Sends the form. A returned secret takes its place, and is shown until the dialog is closed. */
  send: (form: FormData) => Promise<string | null>;
  onClose: () => void;
  children: ComponentChildren;
}

/**
 * A form in a dialog. It keeps its input when the server refuses, whose errors stand at the fields, the first of which
 * gets the focus.
 */
export function FormDialog({ title, submit, send, onClose, children }: FormDialogProps) {
  const { busy, fault, attempt } = useAttempt();
  const secret = useSignal<string | null>(null);
  const fields = useMemo(() => new Fields(fault), [fault]);
  const element = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (fault.value !== null) element.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [fault.value]);
  const press = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    void attempt(async () => {
      secret.value = await send(new FormData(form));
      if (secret.value === null) form.closest('dialog')?.close();
    });
  };
  return (
    <Dialog title={title} onClose={onClose} isHeld={busy.value}>
      {secret.value === null ? (
        <form class="form" onSubmit={press} ref={element}>
          <FieldsContext.Provider value={fields}>{children}</FieldsContext.Provider>
          {fields.rest.value && <Notice fault={fields.rest.value} onClose={() => (fault.value = null)} />}
          <button type="submit" class="primary" disabled={busy.value} aria-busy={busy.value}>
            {submit}
          </button>
        </form>
      ) : (
        <Secret secret={secret.value} />
      )}
    </Dialog>
  );
}

function Secret({ secret }: { secret: string }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  return (
    <div class="form">
      <p class="notice">Store this secret now: it will not be shown again.</p>
      <label>
        Secret
        <input class="mono" readOnly value={secret} ref={field} />
      </label>
      <div class="filters">
        <Copy text={secret} kind="primary" />
      </div>
    </div>
  );
}

type TextInputProps = InputHTMLAttributes<HTMLInputElement> & {
  name: string;
  label: string;
  /** Field of the document; the name by default. */
  path?: Path;
};

/** An input of one line with its label and its errors. */
export function TextInput({ label, path, defaultValue = '', ...input }: TextInputProps) {
  return (
    <Labelled label={label} path={path ?? [input.name]}>
      {(attributes) => <input autocomplete="off" {...input} {...attributes} defaultValue={defaultValue} />}
    </Labelled>
  );
}

/** Choice of the time for which the previous secret stays valid. */
export function OverlapField() {
  return (
    <Labelled label="The previous secret works" path={['overlap_seconds']}>
      {(attributes) => (
        <select {...attributes} name="overlap_seconds">
          <option value="86400">for another day</option>
          <option value="3600">for another hour</option>
          <option value="604800">for another week</option>
          <option value="0">no longer</option>
        </select>
      )}
    </Labelled>
  );
}
