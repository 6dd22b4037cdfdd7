import { effect, type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

const PREFIX = 'zerofleet.';

/** A setting of this browser, no secret: it stays when the page is opened again. */
export function useStored<T>(name: string, initial: T): Signal<T> {
  const stored = useSignal<T>(read(name, initial));
  useEffect(
    () =>
      effect(() => {
        localStorage.setItem(PREFIX + name, JSON.stringify(stored.value));
      }),
    [name, stored],
  );
  return stored;
}

function read<T>(name: string, initial: T): T {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? initial : (JSON.parse(text) as T);
  } catch {
    return initial;
  }
}
