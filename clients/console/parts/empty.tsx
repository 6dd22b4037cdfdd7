import type { ComponentChildren } from 'preact';

/** Placeholder of an empty list, with the next step for the user. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <section class="card empty">
      <h2>{title}</h2>
      {children}
    </section>
  );
}
