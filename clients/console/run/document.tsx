import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { Copy } from '../parts/copy.js';
import { Notice } from '../parts/notice.js';
import { diffLines, documentLines, type Line } from './document-diff.js';
import type { LiveRun } from './live-run.js';

/** The document as it was given, and as it was resolved: each field that was not given has its default. */
export function Document({ run }: { run: LiveRun }) {
  const job = run.job.value;
  const id = job?.id ?? '';
  const { value, fault } = useLoaded(
    async (signal) => ({ given: await client.jobs.document(id, { signal }) }),
    [id],
  );
  if (job === null) return null;
  const given = value.value?.given ?? null;
  return (
    <>
      {fault.value && <Notice fault={fault.value} />}
      {value.value !== null && given === null && (
        <p class="muted">The document that was given is not stored with this run.</p>
      )}
      <div class="columns">
        <Lines
          title="As it was resolved"
          text={JSON.stringify(job.spec, null, 2)}
          lines={given === null ? documentLines(job.spec) : diffLines(given, job.spec)}
        >
          + was filled in or changed, − was given otherwise. The same document gives the same bits on any
          number of ranks.
        </Lines>
        {given !== null && (
          <Lines title="As it was given" text={JSON.stringify(given, null, 2)} lines={documentLines(given)}>
            Changes of the run since then are in the other one only.
          </Lines>
        )}
      </div>
    </>
  );
}

interface LinesProps {
  title: string;
  /** Copied by its button. */
  text: string;
  lines: readonly Line[];
  children: string;
}

function Lines({ title, text, lines, children }: LinesProps) {
  return (
    <section class="card" aria-label={title}>
      <div class="title">
        <h2>{title}</h2>
        <span class="spring" />
        <Copy label="Copy as JSON" kind="quiet" text={text} />
      </div>
      <p class="muted small">{children}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <pre class="diff" tabIndex={0}>
        {lines.map(({ mark, text: line }, index) => {
          const marked = `${mark === '-' ? '−' : mark} ${line}\n`;
          if (mark === '+') return <ins key={index}>{marked}</ins>;
          return mark === '-' ? <del key={index}>{marked}</del> : marked;
        })}
      </pre>
    </section>
  );
}
