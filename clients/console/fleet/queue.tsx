import type { Job, Pool } from '../../../contracts/types.js';
import { linkTo } from '../app/router.js';
import { StateBadge } from '../parts/badge.js';
import { Empty } from '../parts/empty.js';
import { ago, count, words } from '../parts/format.js';
import { TableHead } from '../parts/table-head.js';
import { waitOf } from './fleet.js';

interface QueueProps {
  jobs: readonly Job[];
  pools: readonly Pool[];
  /** Whether more wait than were read. */
  isCut: boolean;
}

export function Queue({ jobs, pools, isCut }: QueueProps) {
  if (jobs.length === 0)
    return (
      <Empty title="No run waits.">
        <p>
          A run that is sent now begins at once where slots are free. <a href="#/runs">Runs</a>
        </p>
      </Empty>
    );
  const byName = new Map(pools.map((pool) => [pool.name, pool]));
  return (
    <section class="card scroll" aria-label="Queue">
      <h2>Queue</h2>
      <table class="runs">
        <TableHead names={['Turn', 'Run', 'State', 'Pool', 'Ranks', 'Priority', 'Why it waits', 'Queued']} />
        <tbody>
          {jobs.map((job) => (
            <WaitingRow key={job.id} job={job} pool={byName.get(job.spec.resources.pool) ?? null} />
          ))}
        </tbody>
      </table>
      {isCut && <p class="muted">Only the newest {count(jobs.length)} are shown.</p>}
    </section>
  );
}

function WaitingRow({ job, pool }: { job: Job; pool: Pool | null }) {
  const { id, name, state, reason, queue_position, requested_ranks, state_history, created_at, spec } = job;
  const { min, max } = spec.resources.ranks;
  return (
    <tr>
      <td>{queue_position ?? '–'}</td>
      <th scope="row">
        <a class="name" href={linkTo(['runs', id])}>
          {name || 'unnamed'}
        </a>
      </th>
      <td>
        <StateBadge state={state} />
      </td>
      <td>{spec.resources.pool}</td>
      <td>
        {requested_ranks}{' '}
        <span class="muted">
          of {min} to {max}
        </span>
      </td>
      <td>{spec.priority}</td>
      <td>
        {waitOf(job, pool)}
        {reason !== null && <span class="muted"> ({words(reason)})</span>}
      </td>
      <td class="muted">{ago(state_history.at(-1)?.at ?? created_at)}</td>
    </tr>
  );
}
