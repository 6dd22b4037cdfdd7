/** Columns of the list of runs. */
import { isReward } from '../../../contracts/evaluation-metrics.js';
import type { Job } from '../../../contracts/types.js';
import { compact, cost, count, duration, loss, lossOf } from '../parts/format.js';
import { bestEvaluation, judgedBy } from '../run/charts/marks.js';

/** Names of datasets by their ids. */
export type DatasetNames = ReadonlyMap<string, string>;

export interface Column {
  name: string;
  label: string;
  text(job: Job, datasets: DatasetNames): string;
  /** By which rows are sorted; null last. */
  value(job: Job, datasets: DatasetNames): number | string | null;
  /** Great values are the best; small ones where it is absent. */
  isGreatBest?: boolean;
}

const number = (
  name: string,
  label: string,
  value: (job: Job) => number | null,
  text: (value: number | null) => string = count,
): Column => ({
  name,
  label,
  value,
  text: (job) => text(value(job)),
});

const great = (column: Column): Column => ({ ...column, isGreatBest: true });

/** A column whose rows are sorted by its texts. */
const text = (name: string, label: string, textOf: Column['text']): Column => ({
  name,
  label,
  value: textOf,
  text: textOf,
});

const plain = (value: number | null) => (value === null ? '–' : String(value));

/** Columns that can be shown beside the name and the state. */
export const COLUMNS: readonly Column[] = [
  {
    name: 'loss',
    label: 'Loss',
    value: ({ progress }) => progress.loss,
    text: ({ progress }) => lossOf(progress),
  },
  {
    name: 'evaluation',
    label: 'Evaluation',
    // The best is first: the lowest loss, or the highest reward.
    value: (job) => {
      const best = bestEvaluation(job);
      return best !== null && isReward(judgedBy(job)) ? -best : best;
    },
    text: (job) => loss(bestEvaluation(job)),
  },
  number('duration', 'Duration', ({ usage }) => usage.run_seconds, duration),
  great(number('steps', 'Steps', ({ progress }) => progress.total_steps)),
  great(number('tokens', 'Tokens', ({ progress }) => progress.tokens, compact)),
  great(number('tokens_per_second', 'Tokens/s', ({ progress }) => progress.tokens_per_second, compact)),
  great(number('ranks', 'Ranks', ({ world_size, requested_ranks }) => world_size ?? requested_ranks)),
  number('lr', 'Rate', ({ spec }) => spec.train.optimizer.lr, plain),
  number('batch', 'Batch', ({ spec }) => spec.train.global_batch_size),
  number('length', 'Length', ({ spec }) => spec.train.sequence_length),
  text('dataset', 'Dataset', datasetOf),
  text('model', 'Model', modelOf),
  text('method', 'Method', methodOf),
  text('precision', 'Precision', ({ spec }) => spec.train.precision),
  number(
    'cost',
    'Cost',
    ({ usage }) => usage.cost,
    (value) => (value === null ? '–' : cost(value)),
  ),
];

export const DEFAULT_COLUMNS: readonly string[] = [
  ...['loss', 'evaluation', 'duration', 'dataset', 'model', 'method'],
];

function datasetOf({ spec: { data } }: Job, names: DatasetNames): string {
  const ids = data.mixture?.map(({ dataset }) => dataset) ?? [data.dataset];
  return ids.map((id) => (id === undefined ? '–' : (names.get(id) ?? id))).join(', ');
}

function modelOf({ spec }: Job): string {
  return spec.model.preset ?? spec.model.config.model_type;
}

/** Names the trained weights and the objective. */
function methodOf({ spec: { train, model } }: Job): string {
  const { adapter, objective } = train;
  const weights =
    adapter === undefined
      ? 'full'
      : model.quantization
        ? `${adapter.type} ${model.quantization}`
        : adapter.type;
  return objective === undefined ? weights : `${weights}, ${objective.type}`;
}

export interface Sorting {
  column: string;
  descending: boolean;
}

/** The next order at a click: the best first, the worst first, the newest first. */
export function turned(sorting: Sorting | null, { name, isGreatBest = false }: Column): Sorting | null {
  if (sorting?.column !== name) return { column: name, descending: isGreatBest };
  return sorting.descending === isGreatBest ? { column: name, descending: !isGreatBest } : null;
}

/** Returns the jobs in the order of a column; newest first without one. */
export function sorted(
  jobs: readonly Job[],
  sorting: Sorting | null,
  datasets: DatasetNames = new Map(),
): Job[] {
  const column = COLUMNS.find(({ name }) => name === sorting?.column);
  if (sorting === null || column === undefined) return [...jobs];
  const sign = sorting.descending ? -1 : 1;
  const keyed = jobs.map((job) => ({ job, value: column.value(job, datasets) }));
  keyed.sort((a, b) => {
    if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
    return sign * (a.value < b.value ? -1 : a.value > b.value ? 1 : 0);
  });
  return keyed.map(({ job }) => job);
}

/**
 * Puts a newly read page in place of the jobs that it covers; the others that were loaded before stay. Both lists are
 * newest first, and ids rise with the time of creation.
 * @param isAll whether there are no older jobs than those of the page
 * @param below id of the last job before the page; null for the first page
 */
export function merged(
  known: readonly Job[],
  page: readonly Job[],
  isAll: boolean,
  below: string | null = null,
): Job[] {
  const newer = below === null ? [] : known.filter(({ id }) => id >= below);
  const oldest = page.at(-1);
  const older = isAll || oldest === undefined ? [] : known.filter(({ id }) => id < oldest.id);
  return [...newer, ...page, ...older];
}
