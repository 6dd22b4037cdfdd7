import { detailsOf, isBad } from '../../text/event-text.js';
import { useLoaded } from '../app/loaded.js';
import { Empty } from '../parts/empty.js';
import { clock } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import type { LiveRun } from './live-run.js';

export function Events({ run }: { run: LiveRun }) {
  const { fault } = useLoaded(() => run.readEvents(), [run]);
  const events = run.events.value;
  if (fault.value) return <Notice fault={fault.value} />;
  if (events.length === 0) return <Empty title="Nothing has happened yet." />;
  return (
    <section class="card">
      <ol class="events" aria-label="Events, newest first">
        {events.map((event) => (
          <li key={event.seq} class={isBad(event) ? 'bad' : undefined}>
            <time dateTime={event.at} class="muted">
              {clock(event.at)}
            </time>
            <div>
              <strong>{event.type}</strong> <span class="muted small">{detailsOf(event)}</span>
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
