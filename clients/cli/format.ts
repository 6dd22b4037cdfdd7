import {
  type Dataset,
  type DryRun,
  type Estimate,
  type Job,
  type JobMetric,
  plainText,
} from '../../contracts/index.js';
import { bytes, duration, ranks } from '../text/numbers.js';

/**
 * Text columns, each as wide as its widest entry; where these are wider than `width`, a line for each entry. Without
 * rows, `none`.
 */
export function table(
  head: readonly string[],
  entries: readonly (readonly string[])[],
  none: string,
  width: number,
): string {
  if (entries.length === 0) return none;
  // Line breaks in a name must not start another row.
  const rows = entries.map((row) => row.map(plainText));
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const gaps = GAP.length * (widths.length - 1);
  if (widths.reduce((sum, column) => sum + column, gaps) > width)
    return rows.map((row) => labelled(head.map((title, at) => [title, row[at] ?? '']))).join('\n\n');
  return [head, ...rows]
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/** Stands between columns. */
const GAP = '  ';

/** Titles of a table's columns, each with its text for a record. */
export type Columns<T> = Readonly<Record<string, (record: T) => string>>;

/** A table of records. Without records, `none`. */
export function tableOf<T>(records: readonly T[], columns: Columns<T>, none: string, width: number): string {
  const rows = records.map((record) => Object.values(columns).map((text) => text(record)));
  return table(Object.keys(columns), rows, none, width);
}

/** Number of a dataset's documents, and how many of them are chats and preferences: `9 (9 chats, 9 pairs)`. */
export function documentsOf({ num_documents, num_chats, ...counts }: Dataset): string {
  const { num_preferences: pairs, num_labelled: labelled, num_prompts: prompts } = counts;
  const kinds = Object.entries({ chats: num_chats, pairs, labelled, prompts })
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count.toLocaleString('en')} ${kind}`);
  return `${num_documents.toLocaleString('en')}${kinds.length > 0 ? ` (${kinds.join(', ')})` : ''}`;
}

/** Age of an RFC 3339 time. */
export function age(time: string, now = Date.now()): string {
  return `${duration(Math.max(0, now - Date.parse(time)) / 1000)} ago`;
}

/** Text for a number that follows from the number of samples. */
const UNCOUNTED = 'known once a worker has prepared the data';
/** `12 %`; a dash while the number of steps is unknown. */
export const percentOf = ({ percent }: Job['progress']) =>
  percent === null ? '–' : `${Math.floor(percent)} %`;
export const ranksOf = (job: Job) => job.world_size ?? job.requested_ranks;
/** `NaN` once steps are done and the loss is none, which JSON does not have. */
export const lossOf = ({ progress: { loss, step } }: Job) => loss?.toFixed(4) ?? (step > 0 ? 'NaN' : '–');
/** `  margin 0.1234  accuracy 75 %`; empty without a preference objective. */
export function preferenceOf({ progress: { preference } }: Job): string {
  if (preference === undefined) return '';
  const { margin, accuracy } = preference;
  const percent = accuracy === null ? '–' : `${Math.round(100 * accuracy)} %`;
  return `  margin ${margin?.toFixed(4) ?? '–'}  accuracy ${percent}`;
}
/** `  reward 0.4167`; empty without reinforcement learning. */
export const rewardOf = (samples: JobMetric['reinforcement']) =>
  samples?.reward === undefined ? '' : `  reward ${samples.reward.toFixed(4)}`;
export const rateOf = (job: Job) =>
  job.progress.tokens_per_second === null
    ? '–'
    : Math.round(job.progress.tokens_per_second).toLocaleString('en');

/** Losses of evaluations: `validation 2.7100, code 1.9342`. */
export const losses = (values: Readonly<Record<string, number>> = {}) =>
  Object.entries(values)
    .map(([name, loss]) => `${name} ${loss.toFixed(4)}`)
    .join(', ');

/** Details of a job for users. */
export function jobDetails(job: Job): string {
  const { progress, failure, latest_checkpoint: checkpoint } = job;
  const reason = job.reason === null ? '' : ` (${job.reason})`;
  const eta =
    progress.eta_seconds === null || job.state !== 'running'
      ? ''
      : `, ${duration(progress.eta_seconds)} left`;
  const rows: [string, string][] = [
    ['job', job.id + (job.name === '' ? '' : `  ${plainText(job.name)}`)],
    ['state', job.state + reason],
    ['created', `${job.created_at}, ${age(job.created_at)}`],
    ['progress', `${stepOf(job)}${eta}`],
    ['loss', lossOf(job)],
    ...bestRow(job),
    ['tokens/s', rateOf(job)],
    ['ranks', String(ranksOf(job))],
  ];
  if (checkpoint) rows.push(['checkpoint', `${checkpoint.id}, step ${checkpoint.step}`]);
  if (checkpoint) rows.push(['digest', checkpoint.state_digest]);
  if (job.export)
    rows.push(['export', `${job.export.prefix}, step ${job.export.step}, digest ${job.export.state_digest}`]);
  if (failure) rows.push(['failure', `${failure.code}: ${failure.message}`]);
  return labelled(rows);
}

function stepOf({ spec, progress }: Job): string {
  const { step, total_steps } = progress;
  if (total_steps !== null) return `step ${step} of ${total_steps}, ${percentOf(progress)}`;
  return `step ${step}, ${rounds(spec.train.epochs)}; the number of steps is ${UNCOUNTED}`;
}

const rounds = (epochs = 1) => `${epochs} ${epochs === 1 ? 'epoch' : 'epochs'}`;

function bestRow({ spec, progress: { early_stopping } }: Job): [string, string][] {
  if (early_stopping?.best_eval_loss == null) return [];
  const { best_eval_loss, best_step, evaluations_without_improvement: since } = early_stopping;
  const metric = spec.train.early_stopping?.metric;
  const text = `${metric} ${best_eval_loss.toFixed(4)} after step ${best_step}, ${since} evaluations without improvement since`;
  return [['best', text]];
}

/** Estimated data and duration of a job. @param currency that of costs, if there is one */
export function workDetails(
  { sequences, tokens, sequences_per_epoch, epochs, duration: time }: DryRun['work'],
  currency: string | null,
): string {
  const whole = (count: number | null) => count?.toLocaleString('en') ?? UNCOUNTED;
  const each = sequences_per_epoch === null ? '' : `, of ${whole(sequences_per_epoch)} sequences each`;
  const epoch = epochs === null ? UNCOUNTED : `${epochs.toPrecision(3)}${each}`;
  const rows: [string, string][] = [
    ['sequences', whole(sequences)],
    ['tokens', whole(tokens)],
    ['epochs', epoch],
    [
      'duration',
      time === null
        ? 'known once a job has run in the pool'
        : `about ${duration(time.seconds)} on ${ranks(time.ranks)}${costOf(time, currency)}, by the speed of ${time.measured_by}`,
    ],
  ];
  return labelled(rows);
}

const costOf = ({ cost }: { cost: number | null }, currency: string | null) =>
  cost ? ` for ${[cost.toFixed(2), currency ?? ''].join(' ').trim()}` : '';

function labelled(rows: readonly (readonly [label: string, value: string])[]): string {
  const width = Math.max(10, ...rows.map(([label]) => label.length));
  return rows.map(([label, value]) => `${label.padEnd(width)}${GAP}${value}`.trimEnd()).join('\n');
}

/** Memory per rank by part, one row per number of ranks. */
export function memoryTable({ data }: Estimate, width: number): string {
  const shares = data.some(({ bytes: parts }) => parts.shared_params > 0);
  const offloads = data.some(({ bytes: parts }) => parts.host > 0);
  const rows = data.map(({ world_size, bytes: parts }) => [
    String(world_size),
    bytes(parts.total),
    bytes(parts.params),
    ...(shares ? [bytes(parts.shared_params)] : []),
    bytes(parts.grad_shard + parts.lane_accumulator),
    bytes(parts.master + parts.moments),
    bytes(parts.activations),
    bytes(parts.staging + parts.packed_weights),
    ...(offloads ? [bytes(parts.host)] : []),
  ]);
  const head = [
    'RANKS',
    'PER RANK',
    'PARAMETERS',
    ...(shares ? ['SHARED PER HOST'] : []),
    'GRADIENTS',
    'OPTIMIZER',
    'ACTIVATIONS',
    'BUFFERS',
    ...(offloads ? ['ON THE HOST'] : []),
  ];
  return table(head, rows, 'no number of ranks is possible', width);
}
