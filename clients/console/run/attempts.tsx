import { Empty } from '../parts/empty.js';
import { clock, duration, words } from '../parts/format.js';
import { TableHead } from '../parts/table-head.js';
import type { LiveRun } from './live-run.js';

/** Each time that workers had the run, and what ended it. */
export function Attempts({ run }: { run: LiveRun }) {
  const attempts = run.attempts.value;
  if (attempts === null) return null;
  if (attempts.length === 0) return <Empty title="No worker has had this run yet." />;
  return (
    <section class="card scroll" aria-label="Attempts">
      <table>
        <TableHead names={['Began', 'Lasted', 'Ranks', 'Workers', 'Outcome']} />
        <tbody>
          {attempts.map(
            ({ epoch, started_at, ended_at, generations, workers, outcome, reason, root_cause }) => (
              <tr key={epoch}>
                <td>{clock(started_at)}</td>
                <td>
                  {ended_at === null ? '–' : duration((Date.parse(ended_at) - Date.parse(started_at)) / 1000)}
                </td>
                <td>{generations.map((one) => one.world_size).join(' → ') || '–'}</td>
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
