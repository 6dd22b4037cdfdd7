import type { ComponentChildren } from 'preact';

/** What stands where there is nothing, and the next step. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <section class="card empty">
      <h2>{title}</h2>
      {children}
    </section>
  );
}
