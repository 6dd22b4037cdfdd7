import { memo } from 'preact/compat';
import type { Job } from '../../../contracts/types.js';
import { linkTo } from '../app/router.js';
import { ProgressBar, StateBadge } from '../parts/badge.js';
import { ago, count } from '../parts/format.js';
import { Rows } from '../parts/rows.js';
import { type Column, type DatasetNames, type Sorting, turned } from './columns.js';

interface RunsTableProps {
  jobs: readonly Job[];
  columns: readonly Column[];
  datasets: DatasetNames;
  sorting: Sorting | null;
  onSort: (sorting: Sorting | null) => void;
  chosen: ReadonlySet<string>;
  onChoose: (id: string, isChosen: boolean) => void;
}

export function RunsTable(props: RunsTableProps) {
  const { jobs, columns, datasets, sorting, onSort, chosen, onChoose } = props;
  return (
    <section class="card scroll" aria-label="Runs">
      <table class="runs" aria-rowcount={jobs.length + 1}>
        <thead class="stacks sorts">
          <tr>
            <th>
              <span class="hidden">Compare</span>
            </th>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col" class="progress-cell">
              Progress
            </th>
            {columns.map((column) => (
              <SortableHead key={column.name} column={column} sorting={sorting} onSort={onSort} />
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
              datasets={datasets}
              isChosen={chosen.has(job.id)}
              onChoose={onChoose}
            />
          )}
        />
      </table>
    </section>
  );
}

interface SortableHeadProps extends Pick<RunsTableProps, 'sorting' | 'onSort'> {
  column: Column;
}

function SortableHead({ column, sorting, onSort }: SortableHeadProps) {
  const { name, label } = column;
  const isSorted = sorting?.column === name;
  const descending = isSorted && sorting.descending;
  return (
    <th scope="col" aria-sort={isSorted ? (descending ? 'descending' : 'ascending') : 'none'}>
      <button type="button" class="quiet" onClick={() => onSort(turned(sorting, column))}>
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
  datasets: DatasetNames;
  isChosen: boolean;
  onChoose: (id: string, isChosen: boolean) => void;
}

/** A row is drawn again only if its run has changed. */
const RunRow = memo(
  ({ job, rowIndex, columns, datasets, isChosen, onChoose }: RunRowProps) => {
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
        <td data-column="State">
          <StateBadge state={state} />
        </td>
        <td class="progress-cell" data-column="Progress">
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
          <td key={column.name} data-column={column.label}>
            {column.text(job, datasets)}
          </td>
        ))}
        <td class="muted" data-column="Created">
          {ago(created_at)}
        </td>
      </tr>
    );
  },
  (before, after) =>
    before.job.updated_at === after.job.updated_at &&
    before.job.progress.step === after.job.progress.step &&
    before.job.queue_position === after.job.queue_position &&
    before.rowIndex === after.rowIndex &&
    before.columns === after.columns &&
    before.datasets === after.datasets &&
    before.isChosen === after.isChosen,
);
