import type { JobMetric } from '../../contracts/index.js';

/** Training time of all runs together. Starts, saves and the export add about ten seconds. */
const TRAINING_SECONDS = 50;
/** Below the minimum the loss hardly falls. Beyond the maximum the loss no longer falls. */
const [MIN_STEPS, MAX_STEPS] = [20, 2_000];
/** The first steps also allocate memory. */
const WARMUP_STEPS = 2;

/**
 * Chooses the number of steps by which the quickstart takes about a minute on this machine. The job is trained twice,
 * once with a pause and once without, so twice the steps run. The number is even, because the pause comes half-way.
 * @param metrics of the steps of a short run of the same job
 */
export function chooseSteps(metrics: readonly Pick<JobMetric, 'step' | 'seconds'>[]): number {
  const seconds = metrics
    .filter(({ step }) => step > WARMUP_STEPS)
    .map((metric) => metric.seconds.total)
    .sort((a, b) => a - b);
  const median = seconds[Math.floor(seconds.length / 2)] ?? Number.POSITIVE_INFINITY;
  const pairs = Math.round(TRAINING_SECONDS / 2 / median / 2);
  return Math.min(Math.max(2 * pairs, MIN_STEPS), MAX_STEPS);
}
