import type { DryRun, Job, JobEvent, ResolvedJobSpec } from '../../contracts/index.js';
import {
  flopsPerToken,
  reinforcementOf,
  resolveSteps,
  samplesPerEpoch,
  sequencesOfUnit,
  trainingDatasetsOf,
  unitOf,
} from '../../job-document/index.js';
import type { ProjectRecords } from '../access/project-records.js';

type Work = DryRun['work'];

/** Number of newest jobs of the project whose measurements are considered. */
const MAX_CANDIDATES = 100;

interface WorkDeps {
  records: Pick<ProjectRecords, 'getDataset' | 'listJobs' | 'listAttempts'>;
  /** Returns all events of a job. */
  events(jobId: string): Promise<JobEvent[]>;
}

/** Estimates the data that a job would read and its duration, from measurements of earlier jobs. */
export async function workOf(spec: ResolvedJobSpec, deps: WorkDeps): Promise<Work> {
  const { data: jobs } = await deps.records.listJobs({ limit: MAX_CANDIDATES });
  const { global_batch_size, sequence_length } = spec.train;
  const perSample = sequencesOfUnit(spec.train);
  const named = trainingDatasetsOf(spec.data);
  const datasets = await Promise.all(named.map(({ dataset }) => deps.records.getDataset(dataset)));
  const samples = samplesPerEpoch(datasets, spec.data, spec.train);
  const sampled = sampledWork(spec.train, samples);
  if (sampled !== null) return sampled;
  const counted = samples ? samples * perSample : null;
  const prepared = await preparedData(spec, jobs, deps);
  const sequencesPerEpoch = prepared?.sequences ?? counted;
  const known = sequencesPerEpoch === null ? null : sequencesPerEpoch / perSample;
  const { steps } = resolveSteps(spec, { samples: known, continues: null }).spec.train;
  const sequences = steps === undefined ? null : steps * global_batch_size * perSample;
  const positions = sequences === null ? null : sequences * sequence_length;
  const useful = 1 - (prepared?.padding ?? 0);
  return {
    sequences,
    tokens: positions && Math.round(positions * useful),
    sequences_per_epoch: sequencesPerEpoch,
    epochs: sequences && sequencesPerEpoch ? sequences / sequencesPerEpoch : (spec.train.epochs ?? null),
    duration: positions === null ? null : await durationOf(spec, { positions, useful }, jobs, deps),
  };
}

/** Samples of reinforcement learning, whose lengths nobody knows; null for another job. */
function sampledWork(train: ResolvedJobSpec['train'], prompts: number | null): Work | null {
  const settings = reinforcementOf(train);
  if (settings === null) return null;
  const { prompts_per_step, group_size, num_iterations } = settings;
  const { steps = null } = train;
  const rollouts = steps === null ? null : Math.ceil(steps / num_iterations);
  return {
    sequences: rollouts && rollouts * prompts_per_step * group_size,
    tokens: null,
    sequences_per_epoch: prompts && prompts * group_size,
    epochs: rollouts && prompts ? (rollouts * prompts_per_step) / prompts : (train.epochs ?? null),
    duration: null,
  };
}

interface PreparedCounts {
  sequences: number;
  /** Share of padding in them. */
  padding: number;
}

/** Sequences prepared for an earlier job with the same data; null: there is none. */
async function preparedData(
  spec: ResolvedJobSpec,
  jobs: readonly Job[],
  { events }: WorkDeps,
): Promise<PreparedCounts | null> {
  const dataKey = ({ data: { seed, ...data }, train }: ResolvedJobSpec) =>
    // Without a validation split the seed changes only the order of sequences, not their number.
    JSON.stringify([data, data.validation_fraction > 0 && seed, train.sequence_length, unitOf(train)]);
  const same = jobs.find((job) => dataKey(job.spec) === dataKey(spec) && job.progress.step > 0);
  if (!same) return null;
  const prepared = (await events(same.id)).findLast(({ type }) => type === 'data.prepared');
  const { sequences, padding } = (prepared?.data ?? {}) as { sequences?: unknown; padding?: unknown };
  if (typeof sequences !== 'number') return null;
  return { sequences, padding: typeof padding === 'number' ? padding : 0 };
}

/**
 * Duration estimated from the newest of the jobs with the most similar model cost. A rank is assumed to perform as many
 * FLOPs per second as in that job, with the same cost of padding.
 *
 * @param read positions of the sequences, and the share of them that is no padding
 */
async function durationOf(
  spec: ResolvedJobSpec,
  read: { positions: number; useful: number },
  jobs: readonly Job[],
  { records }: WorkDeps,
): Promise<Work['duration']> {
  const cost = flopsPerToken(spec);
  const { pool, ranks } = spec.resources;
  const measured = jobs
    .filter((job) => job.spec.resources.pool === pool && job.spec.train.precision === spec.train.precision)
    .filter(({ progress }) => (progress.tokens_per_second ?? 0) > 0)
    .map((job) => ({ job, ratio: flopsPerToken(job.spec) / cost }))
    .sort((a, b) => Math.abs(Math.log(a.ratio)) - Math.abs(Math.log(b.ratio)));
  const [best] = measured;
  if (!best) return null;
  const { id, progress, usage, world_size } = best.job;
  const [attempt] = (await records.listAttempts(id, { limit: 1 })).data;
  const then = world_size ?? attempt?.generations.at(-1)?.world_size;
  if (!then) return null;
  const positionsThen = (progress.tokens_per_second ?? 0) / (1 - (progress.padding ?? 0));
  const positionsPerSecond = ((positionsThen * best.ratio) / then) * ranks.preferred;
  const seconds = read.positions / positionsPerSecond;
  const costPerSecond = usage.rank_seconds > 0 ? (usage.cost / usage.rank_seconds) * ranks.preferred : null;
  return {
    seconds,
    tokens_per_second: positionsPerSecond * read.useful,
    ranks: ranks.preferred,
    cost: costPerSecond && costPerSecond * seconds,
    measured_by: id,
  };
}
