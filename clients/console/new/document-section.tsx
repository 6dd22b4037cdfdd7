import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { parseDraft } from './draft.js';
import { useForm } from './inputs.js';

/** The whole document as JSON, for fields that the form does not show. */
export function DocumentSection() {
  const { draft } = useForm();
  const text = useSignal('');
  const error = useSignal<string | null>(null);
  const current = JSON.stringify(draft.value, null, 2);
  useEffect(() => {
    // While it is written, it stays as it is written.
    if (meansTheSame(text.value, current)) return;
    text.value = current;
    error.value = null;
  }, [current, text, error]);
  const write = (written: string) => {
    text.value = written;
    try {
      draft.value = parseDraft(written);
      error.value = null;
    } catch (bad) {
      error.value = (bad as Error).message;
    }
  };
  return (
    <details class="card part">
      <summary>Document</summary>
      <label class="field">
        <span class="small muted">The form changes some of its fields; all of them can be written here.</span>
        <textarea
          aria-label="Document as JSON"
          aria-invalid={error.value !== null}
          class="mono"
          rows={20}
          spellcheck={false}
          value={text.value}
          onInput={({ currentTarget }) => write(currentTarget.value)}
        />
      </label>
      {error.value !== null && (
        <p class="errors small" role="alert">
          {error.value}
        </p>
      )}
    </details>
  );
}

function meansTheSame(written: string, document: string): boolean {
  try {
    return JSON.stringify(parseDraft(written)) === JSON.stringify(parseDraft(document));
  } catch {
    return false;
  }
}
