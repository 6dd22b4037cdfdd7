import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface DialogProps {
  title: string;
  onClose: () => void;
  /** True while its action runs, whose result would be lost. */
  isHeld?: boolean;
  children: ComponentChildren;
}

/** A modal dialog: Escape closes it, and the focus returns to where it was. */
export function Dialog({ title, onClose, isHeld = false, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onCancel={(event) => isHeld && event.preventDefault()}
    >
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" disabled={isHeld} onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {children}
    </dialog>
  );
}
