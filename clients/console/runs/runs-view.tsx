import { signal, useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { Job } from '../../../contracts/types.js';
import { ApiError, collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { go, linkTo, route } from '../app/router.js';
import { may } from '../app/session.js';
import { Copy } from '../parts/copy.js';
import { Empty } from '../parts/empty.js';
import { Notice } from '../parts/notice.js';
import { useStored } from '../parts/stored.js';
import { COLUMNS, type DatasetNames, DEFAULT_COLUMNS, merged, sorted } from './columns.js';
import { type Filters, hasText, queryOf, requestOf, type View, viewOf } from './filters.js';
import { PageRotation } from './page-rotation.js';
import { RunsFilters } from './runs-filters.js';
import { RunsTable } from './runs-table.js';

const PAGE = 50;
const REFRESH_MS = 10_000;
const DATASETS_NAMED = 500;
/** Runs that can be compared at once: the colours of curves. */
const MAX_COMPARED = 8;

/** One page of runs, newest first. */
async function readPage(filters: Filters, after: string | undefined, signal: AbortSignal) {
  const query = { ...requestOf(filters, Date.now()), limit: PAGE, ...(after && { after }) };
  const { data, response, error } = await client.http.GET('/v1/jobs', { params: { query }, signal });
  if (data === undefined) throw new ApiError(response.status, error ?? null, 'list of runs');
  return data;
}

/** Names of the newest datasets; an older one is shown by its id. */
function useDatasetNames(): DatasetNames {
  const { value } = useLoaded(
    () =>
      may('datasets') ? collect(client.datasets.list({ limit: 100 }), DATASETS_NAMED) : Promise.resolve([]),
    [],
  );
  const read = value.value;
  return useMemo(() => new Map((read ?? []).map(({ id, name }) => [id, name])), [read]);
}

/** The newest runs of a view, read again every few seconds, and older ones once `more` was called. */
function useRuns(view: View) {
  const { state, label, since } = view;
  // Other filters begin with an empty list.
  const { jobs, next, rotation } = useMemo(
    () => ({
      jobs: signal<readonly Job[]>([]),
      next: signal<string | null>(null),
      rotation: new PageRotation(),
    }),
    [state, label, since],
  );
  const newest = useLoaded(
    async (aborted) => {
      const before = rotation.next();
      const { data, next_cursor } = await readPage(view, before?.cursor, aborted);
      const [last, oldest] = [data.at(-1), jobs.value.at(-1)];
      jobs.value = merged(jobs.value, data, next_cursor === null, before?.below);
      // The page reaches as far as the list, or further.
      if (next_cursor === null || last === undefined || oldest === undefined || last.id <= oldest.id)
        next.value = next_cursor;
      const end = next_cursor !== null && last ? { cursor: next_cursor, below: last.id } : null;
      rotation.read(before, end, jobs.value.at(-1)?.id ?? '');
      return true;
    },
    [state, label, since],
    { every_ms: REFRESH_MS },
  );
  const more = async () => {
    const page = await readPage(view, next.value ?? undefined, new AbortController().signal);
    jobs.value = [...jobs.value, ...page.data.filter(({ id }) => !jobs.value.some((job) => job.id === id))];
    next.value = page.next_cursor;
  };
  return { jobs, next, newest, more };
}

export function RunsView() {
  const view = viewOf(route.value.query);
  const { state, label, since, sorting } = view;
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const stored = useStored<readonly string[]>('runs.columns', DEFAULT_COLUMNS);
  const columns = view.columns ?? stored.value;
  const datasets = useDatasetNames();
  const { jobs, next, newest, more } = useRuns(view);
  const shown = useMemo(
    () =>
      sorted(
        jobs.value.filter((job) => hasText(job, view.text)),
        sorting,
        datasets,
      ),
    [jobs.value, view.text, sorting?.column, sorting?.descending, datasets],
  );
  // The same list while it is the same choice: rows are drawn again for another one.
  const shownColumns = useMemo(() => COLUMNS.filter(({ name }) => columns.includes(name)), [columns.join()]);
  const choose = (id: string, isChosen: boolean) => {
    const ids = new Set(chosen.value);
    if (isChosen && ids.size < MAX_COMPARED) ids.add(id);
    else ids.delete(id);
    chosen.value = ids;
  };
  const link = (changed: Partial<View>) => linkTo(['runs'], queryOf({ ...view, ...changed }));
  const change = (changed: Partial<View>) => {
    if (changed.columns) stored.value = changed.columns;
    go(link(changed), { replace: true });
  };
  return (
    <>
      <div class="title">
        <h1>Runs</h1>
        <span class="spring" />
        <Copy label="Copy the link" kind="quiet" text={new URL(link({ columns }), location.href).href} />
        {chosen.value.size > 1 && (
          <a class="button primary" href={linkTo(['compare'], { run: [...chosen.value] })}>
            Compare {chosen.value.size}
          </a>
        )}
        {may('jobs:write') && (
          <a class="button" href="#/new">
            New run
          </a>
        )}
      </div>
      <RunsFilters
        filters={view}
        onChange={change}
        columns={columns}
        onColumns={(chosenColumns) => change({ columns: chosenColumns })}
      />
      {newest.fault.value && <Notice fault={newest.fault.value} />}
      {shown.length > 0 && (
        <RunsTable
          jobs={shown}
          columns={shownColumns}
          datasets={datasets}
          sorting={sorting}
          onSort={(other) => change({ sorting: other })}
          chosen={chosen.value}
          onChoose={choose}
        />
      )}
      {newest.value.value !== null && shown.length === 0 && (
        <NoRuns filtered={view.text !== '' || state !== 'all' || label !== '' || since !== 'ever'} />
      )}
      {next.value !== null && (
        <button type="button" onClick={() => void more().catch(() => newest.reload())}>
          Load older runs
        </button>
      )}
    </>
  );
}

function NoRuns({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No run passes these filters." />;
  return (
    <Empty title="No run yet.">
      <p>
        <a href="#/new">Begin one here</a>, send one with <code>zerofleet submit job.yaml</code>, or by{' '}
        <a href="docs">the API</a>.
      </p>
    </Empty>
  );
}
