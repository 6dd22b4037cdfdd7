import { collect } from '../../client/index.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { Empty } from '../parts/empty.js';
import { clock, duration, words } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { TableHead } from '../parts/table-head.js';
import type { LiveRun } from './live-run.js';

/** Each time that workers had the run, and what ended it. */
export function Attempts({ run }: { run: LiveRun }) {
  const job = run.job.value;
  const id = job?.id ?? '';
  const { value, fault } = useLoaded(() => collect(client.jobs.attempts(id)), [id, job?.epoch]);
  if (fault.value) return <Notice fault={fault.value} />;
  if (value.value === null) return null;
  if (value.value.length === 0) return <Empty title="No worker has had this run yet." />;
  return (
    <section class="card scroll" aria-label="Attempts">
      <table>
        <TableHead names={['Began', 'Lasted', 'Ranks', 'Workers', 'Outcome']} />
        <tbody>
          {value.value.map(
            ({ epoch, started_at, ended_at, world_size, workers, outcome, reason, root_cause }) => (
              <tr key={epoch}>
                <td>{clock(started_at)}</td>
                <td>
                  {ended_at === null ? '–' : duration((Date.parse(ended_at) - Date.parse(started_at)) / 1000)}
                </td>
                <td>{world_size ?? '–'}</td>
                <td class="mono small">{workers.join(', ')}</td>
                <td>
                  {outcome}
                  {reason && <span class="muted"> {words(reason)}</span>}
                  {root_cause && <code class="small"> {JSON.stringify(root_cause)}</code>}
                </td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </section>
  );
}
