import { useEffect } from 'preact/hooks';
import { go } from './router.js';

export const SHORTCUTS = [
  { keys: '/', action: 'search' },
  { keys: 'g r', action: 'runs' },
  { keys: 'g s', action: 'sweeps' },
  { keys: 'g f', action: 'fleet' },
  { keys: 'g d', action: 'datasets' },
  { keys: 'g m', action: 'models' },
  { keys: 'g p', action: 'playground' },
  { keys: 'g n', action: 'new run' },
  { keys: 'g a', action: 'admin' },
  { keys: '?', action: 'this help' },
  { keys: 'Esc', action: 'close' },
] as const;

const PAGES: Readonly<Record<string, string>> = {
  r: '#/runs',
  s: '#/sweeps',
  p: '#/playground',
  f: '#/fleet',
  d: '#/datasets',
  m: '#/models',
  n: '#/new',
  a: '#/admin',
};
/** Time between the keys of a sequence. */
const SEQUENCE_MS = 1_000;

const isWriting = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/**
 * A modal dialog keeps the keyboard to itself: a key must not lead away from a form, or from a secret that is shown
 * once.
 */
const isCommand = ({ ctrlKey, metaKey, altKey, target }: KeyboardEvent) =>
  !ctrlKey && !metaKey && !altKey && !isWriting(target) && document.querySelector('dialog[open]') === null;

function focusSearch(event: KeyboardEvent): void {
  const search = document.querySelector<HTMLInputElement>('input[type=search]');
  if (search === null) return;
  event.preventDefault();
  search.focus();
}

/** Keyboard commands of all views. @param onHelp called for `?` */
export function useShortcuts(onHelp: () => void): void {
  // One listener for the life of the page.
  useEffect(() => {
    let wentAt = Number.NEGATIVE_INFINITY;
    const press = (event: KeyboardEvent) => {
      if (!isCommand(event)) return;
      const page = performance.now() - wentAt < SEQUENCE_MS ? PAGES[event.key] : undefined;
      wentAt = event.key === 'g' ? performance.now() : Number.NEGATIVE_INFINITY;
      if (page !== undefined) go(page);
      else if (event.key === '?') onHelp();
      else if (event.key === '/') focusSearch(event);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}
