import { encodeTime } from 'ulid';
import { DEFAULT_PROJECT, type Job, type JobState, type Page } from '../../contracts/index.js';
import { indexKey, namedIndex, type StoreContext } from '../core/context.js';
import { readPage } from '../core/listing.js';
import type { NamedPageRequest } from '../core/paging.js';

export interface JobFilter extends NamedPageRequest {
  /** Any of these states. */
  state?: readonly JobState[];
  /** `key=value`; all labels must match. */
  label?: readonly string[];
  pool?: string;
  /** RFC 3339. */
  created_after?: string;
  created_before?: string;
}

/** Upper bound of the time between making a job's id and recording the job. */
const ID_AGE_MS = 3_600_000;

/** Lists jobs that pass a filter, newest first. */
export function listJobs(
  context: StoreContext,
  { project = DEFAULT_PROJECT, ...filter }: JobFilter,
  load: (ids: string[]) => Promise<(Job | null)[]>,
): Promise<Page<Job>> {
  const { created_after, created_before } = filter;
  // An id contains the time of its creation, which is a little before the job is recorded.
  const from = created_after && idAt(Date.parse(created_after) - ID_AGE_MS);
  const to = created_before && idAt(Date.parse(created_before) + 1);
  return readPage(context, {
    indexes: indexesOf(filter).map((name) => indexKey(context, project, name)),
    page: filter,
    range: { from, to },
    load,
    // Index and record are read one after the other; the record decides.
    matches: (job) => matches(job, filter),
  });
}

function idAt(ms: number): string {
  return `job_${encodeTime(Math.max(0, ms))}`;
}

/** Returns the narrowest indexes that contain every job that passes the filter. */
function indexesOf({ name, label = [], state = [], pool }: JobFilter): string[] {
  if (name !== undefined) return [namedIndex('jobs', name)];
  if (label[0] !== undefined) return [`jobs:label:${label[0]}`];
  if (state.length > 0) return state.map((one) => `jobs:state:${one}`);
  return [pool === undefined ? 'jobs' : `jobs:pool:${pool}`];
}

function matches(job: Job, { name, label = [], state = [], pool, ...created }: JobFilter): boolean {
  const { created_after, created_before } = created;
  const at = Date.parse(job.created_at);
  return (
    (name === undefined || job.name === name) &&
    label.every((one) => labelTexts(job).includes(one)) &&
    (state.length === 0 || state.includes(job.state)) &&
    (pool === undefined || job.spec.resources.pool === pool) &&
    (created_after === undefined || at > Date.parse(created_after)) &&
    (created_before === undefined || at < Date.parse(created_before))
  );
}

/** Returns the indexes of a job besides those of all jobs and of its state, relative to `<index>:jobs:`. */
export function jobIndexes({ name, labels, spec }: Pick<Job, 'name' | 'labels' | 'spec'>): string[] {
  return [
    // Unnamed jobs have no name index.
    ...(name === '' ? [] : [`name:${name}`]),
    `pool:${spec.resources.pool}`,
    ...labelTexts({ labels }).map((text) => `label:${text}`),
  ];
}

function labelTexts({ labels }: Pick<Job, 'labels'>): string[] {
  return Object.entries(labels).map(([key, value]) => `${key}=${value}`);
}
