import type { Signal } from '@preact/signals';
import { memo } from 'preact/compat';
import type { Job } from '../../../contracts/types.js';
import { linkTo } from '../app/router.js';
import { ProgressBar, StateBadge } from '../parts/badge.js';
import { ago, count } from '../parts/format.js';
import { Rows } from '../parts/rows.js';
import type { Column, Sorting } from './columns.js';

interface RunsTableProps {
  jobs: readonly Job[];
  columns: readonly Column[];
  sorting: Signal<Sorting | null>;
  chosen: ReadonlySet<string>;
  onChoose: (id: string, isChosen: boolean) => void;
}

export function RunsTable({ jobs, columns, sorting, chosen, onChoose }: RunsTableProps) {
  return (
    <section class="card scroll" aria-label="Runs">
      <table class="runs" aria-rowcount={jobs.length + 1}>
        <thead>
          <tr>
            <th>
              <span class="hidden">Compare</span>
            </th>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col">Progress</th>
            {columns.map((column) => (
              <SortableHead key={column.name} column={column} sorting={sorting} />
            ))}
            <th scope="col">Created</th>
          </tr>
        </thead>
        <Rows
          items={jobs}
          row={(job, index) => (
            <RunRow
              key={job.id}
              job={job}
              rowIndex={index + 2}
              columns={columns}
              isChosen={chosen.has(job.id)}
              onChoose={onChoose}
            />
          )}
        />
      </table>
    </section>
  );
}

function SortableHead({ column, sorting }: { column: Column; sorting: Signal<Sorting | null> }) {
  const { name, label } = column;
  const isSorted = sorting.value?.column === name;
  const descending = isSorted && sorting.value?.descending === true;
  /** Descending, ascending, and as they were. */
  const toggle = () => {
    sorting.value = !isSorted
      ? { column: name, descending: true }
      : descending
        ? { column: name, descending: false }
        : null;
  };
  return (
    <th scope="col" aria-sort={isSorted ? (descending ? 'descending' : 'ascending') : 'none'}>
      <button type="button" class="quiet" onClick={toggle}>
        {label}
        {isSorted && <span aria-hidden="true">{descending ? ' ↓' : ' ↑'}</span>}
      </button>
    </th>
  );
}

interface RunRowProps {
  job: Job;
  /** `aria-rowindex` of the row; the head has 1. */
  rowIndex: number;
  columns: readonly Column[];
  isChosen: boolean;
  onChoose: (id: string, isChosen: boolean) => void;
}

/** A row is drawn again only if its run has changed. */
const RunRow = memo(
  ({ job, rowIndex, columns, isChosen, onChoose }: RunRowProps) => {
    const { id, name, state, progress, queue_position, created_at } = job;
    const label = name || 'unnamed';
    return (
      <tr aria-rowindex={rowIndex}>
        <td>
          <input
            type="checkbox"
            aria-label={`Compare ${label}`}
            checked={isChosen}
            onChange={(event) => onChoose(id, event.currentTarget.checked)}
          />
        </td>
        <th scope="row">
          <a class="name" href={linkTo(['runs', id])}>
            {label}
          </a>
        </th>
        <td>
          <StateBadge state={state} />
        </td>
        <td class="progress-cell">
          {queue_position === null ? (
            <>
              <ProgressBar percent={progress.percent} label={`Progress of ${label}`} />
              <span class="small muted">
                {count(progress.step)} / {count(progress.total_steps)}
              </span>
            </>
          ) : (
            <span class="small muted">{queue_position} in the queue</span>
          )}
        </td>
        {columns.map((column) => (
          <td key={column.name}>{column.text(job)}</td>
        ))}
        <td class="muted">{ago(created_at)}</td>
      </tr>
    );
  },
  (before, after) =>
    before.job.updated_at === after.job.updated_at &&
    before.job.progress.step === after.job.progress.step &&
    before.job.queue_position === after.job.queue_position &&
    before.rowIndex === after.rowIndex &&
    before.columns === after.columns &&
    before.isChosen === after.isChosen,
);
