import { useSignal } from '@preact/signals';
import { ActionButton } from './action.js';

interface CopyProps {
  text: string;
  label?: string;
  kind?: 'primary' | 'quiet';
}

/** Copies a text. */
export function Copy({ text, label = 'Copy', kind }: CopyProps) {
  const copied = useSignal<string | null>(null);
  const copy = async () => {
    await copyText(text);
    copied.value = text;
  };
  return (
    <>
      <ActionButton label={label} kind={kind} act={copy} />
      <span role="status" class="muted small">
        {copied.value === text && 'copied'}
      </span>
    </>
  );
}

async function copyText(text: string): Promise<void> {
  // Browsers offer their clipboard only to pages that came over TLS or from this machine.
  if (isSecureContext) return navigator.clipboard.writeText(text);
  const put = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
  };
  document.addEventListener('copy', put, { once: true });
  document.execCommand('copy');
}
