import { useSignal } from '@preact/signals';

/** Copies a text. Browsers offer that to pages of a secure origin only; elsewhere a reader selects the text. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const copied = useSignal('');
  if (navigator.clipboard === undefined) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    copied.value = text;
  };
  return (
    <button type="button" onClick={() => void copy()}>
      {copied.value === text ? 'Copied' : label}
    </button>
  );
}
