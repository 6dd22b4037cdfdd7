import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { parseDraft } from './draft.js';

interface JsonInputProps {
  label: string;
  rows: number;
  value: unknown;
  /** Takes what is written once it is a JSON object. */
  onWrite: (written: Record<string, unknown>) => void;
}

/** A JSON object as text. */
export function JsonInput({ label, rows, value, onWrite }: JsonInputProps) {
  const text = useSignal('');
  const error = useSignal<string | null>(null);
  const current = JSON.stringify(value, null, 2);
  useEffect(() => {
    // While it is written, it stays as it is written.
    if (meansTheSame(text.value, current)) return;
    text.value = current;
    error.value = null;
  }, [current, text, error]);
  const write = (written: string) => {
    text.value = written;
    try {
      onWrite(parseDraft(written));
      error.value = null;
    } catch (bad) {
      error.value = (bad as Error).message;
    }
  };
  return (
    <>
      <textarea
        aria-label={label}
        aria-invalid={error.value !== null}
        class="mono"
        rows={rows}
        spellcheck={false}
        value={text.value}
        onInput={({ currentTarget }) => write(currentTarget.value)}
      />
      {error.value !== null && (
        <p class="errors small" role="alert">
          {error.value}
        </p>
      )}
    </>
  );
}

function meansTheSame(written: string, document: string): boolean {
  try {
    return JSON.stringify(parseDraft(written)) === JSON.stringify(parseDraft(document));
  } catch {
    return false;
  }
}
