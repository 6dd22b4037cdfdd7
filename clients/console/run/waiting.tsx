import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { waitOf } from '../fleet/fleet.js';
import { count } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import type { LiveRun } from './live-run.js';

/** The pools and the position in the queue are read in turn: together one request in ten seconds. */
const REFRESH_MS = 20_000;

/** Why a run does not train yet, while it waits. */
export function Waiting({ run }: { run: LiveRun }) {
  const job = run.job.value;
  const { value, fault } = useLoaded(
    () => {
      run.reread('job');
      return client.pools();
    },
    [run],
    { every_ms: REFRESH_MS },
  );
  if (job === null) return null;
  const { pool } = job.spec.resources;
  return (
    <section class="card" aria-label="Why it waits">
      <h2>
        {job.queue_position === null ? 'It begins' : `${count(job.queue_position)} in the queue of ${pool}`}
      </h2>
      {fault.value && <Notice fault={fault.value} />}
      {value.value && <p>{waitOf(job, value.value.find(({ name }) => name === pool) ?? null)}</p>}
      <p class="small">
        <a href="#/fleet">The fleet</a> shows who else waits.
      </p>
    </section>
  );
}
