import type { LiveRun } from './live-run.js';

/** The document as it was resolved: each field that was not given has its default. */
export function Document({ run }: { run: LiveRun }) {
  const spec = run.job.value?.spec;
  return (
    <section class="card">
      <p class="muted">
        Every default is filled in; the same document gives the same bits on any number of ranks.
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <pre tabIndex={0}>{JSON.stringify(spec, null, 2)}</pre>
    </section>
  );
}
