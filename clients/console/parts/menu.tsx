import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { route } from '../app/router.js';

interface MenuProps {
  label: ComponentChildren;
  class: string;
  children: ComponentChildren;
}

/** A menu that opens at its label. Escape, a click elsewhere and another view close it. */
export function Menu({ label, class: className, children }: MenuProps) {
  const details = useRef<HTMLDetailsElement>(null);
  const view = route.value.path.join('/');
  const close = () => {
    if (details.current) details.current.open = false;
  };
  useEffect(close, [view]);
  useEffect(() => {
    const onPointer = (event: Event) => {
      if (!details.current?.contains(event.target as Node)) close();
    };
    document.addEventListener('pointerdown', onPointer);
    return () => document.removeEventListener('pointerdown', onPointer);
  }, []);
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !details.current?.open) return;
    event.preventDefault();
    close();
    details.current.querySelector('summary')?.focus();
  };
  return (
    <details ref={details} class={className} onKeyDown={onKey}>
      <summary>{label}</summary>
      <div class="menu">{children}</div>
    </details>
  );
}
