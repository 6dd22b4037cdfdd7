import { useSignal } from '@preact/signals';
import { ActionButton } from './action.js';

/** A button that copies a text. A browser that forbids it says so. */
export function CopyButton({ label, text }: { label: string; text: string }) {
  const copied = useSignal<string | null>(null);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    copied.value = text;
  };
  return (
    <>
      <ActionButton label={label} kind="quiet" act={copy} />
      {copied.value === text && (
        <span role="status" class="muted small">
          copied
        </span>
      )}
    </>
  );
}
