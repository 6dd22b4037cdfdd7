/** Filters of the list of runs, as they stand in the address. */

import type { Job, JobState } from '../../../contracts/types.js';
import type { ListJobs } from '../../typescript/index.js';
import { includesText } from '../parts/search.js';
import type { Sorting } from './columns.js';

/** View of the list, as its address encodes it. */
export interface View extends Filters {
  /** Null: as this browser has it. */
  columns: readonly string[] | null;
  sorting: Sorting | null;
}

export interface Filters {
  text: string;
  /** A group of states, or all. */
  state: keyof typeof STATES;
  /** `name=value` */
  label: string;
  since: keyof typeof TIMES;
}

/** Groups of states. */
export const STATES = {
  all: [],
  active: ['queued', 'provisioning', 'starting', 'running', 'recovering', 'pausing', 'cancelling'],
  paused: ['paused'],
  succeeded: ['succeeded'],
  failed: ['failed'],
  cancelled: ['cancelled'],
} as const satisfies Record<string, readonly JobState[]>;

/** Ages in hours. */
export const TIMES = { ever: 0, day: 24, week: 168, month: 720 } as const;

const isKey = <T extends object>(table: T, key: string | null): key is keyof T & string =>
  key !== null && Object.hasOwn(table, key);

export function viewOf(query: URLSearchParams): View {
  const [state, since] = [query.get('state'), query.get('since')];
  const [columns, sort] = [query.get('columns') ?? '', query.get('sort') ?? ''];
  const column = sort.replace(/^-/, '');
  return {
    text: query.get('text') ?? '',
    state: isKey(STATES, state) ? state : 'all',
    label: query.get('label') ?? '',
    since: isKey(TIMES, since) ? since : 'ever',
    columns: columns === '' ? null : columns.split(','),
    sorting: column === '' ? null : { column, descending: sort !== column },
  };
}

/** Parameters of the address; defaults are left out. */
export function queryOf({ text, state, label, since, columns, sorting }: View): Record<string, string> {
  return {
    text,
    state: state === 'all' ? '' : state,
    label,
    since: since === 'ever' ? '' : since,
    columns: columns?.join(',') ?? '',
    sort: sorting === null ? '' : `${sorting.descending ? '-' : ''}${sorting.column}`,
  };
}

/** The request for a page of runs; `text` is looked for in what was loaded. @param now Unix time in milliseconds */
export function requestOf({ state, label, since }: Omit<Filters, 'text'>, now: number): ListJobs {
  const hours = TIMES[since];
  return {
    ...(state !== 'all' && { state: [...STATES[state]] }),
    ...(/^[^=]+=/.test(label) && { label: [label] }),
    ...(hours > 0 && { created_after: new Date(now - hours * 3_600_000).toISOString() }),
  };
}

/** Returns whether the name, id or a label of a run contains the text. */
export function hasText({ name, id, labels }: Pick<Job, 'name' | 'id' | 'labels'>, text: string): boolean {
  return includesText(
    [name, id, ...Object.entries(labels).map(([label, value]) => `${label}=${value}`)],
    text,
  );
}
