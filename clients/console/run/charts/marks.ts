/** Checkpoints of a run that stand out. */
import {
  compareFigures,
  evaluationOf,
  figureOf,
  metricOf,
  VALIDATION,
} from '../../../../contracts/evaluation-metrics.js';
import type { Checkpoint, Job } from '../../../../contracts/types.js';

export type Mark = 'newest' | 'best' | 'pinned' | 'damaged';

type Given = Pick<Checkpoint, 'id' | 'step' | 'pinned' | 'damaged' | 'eval_losses' | 'best_step'>;
type Rules = {
  train: Pick<Job['spec']['train'], 'early_stopping' | 'objective'>;
  checkpoint: Pick<Job['spec']['checkpoint'], 'keep'>;
};

/**
 * Returns the marks of each checkpoint by its id. Damaged ones are neither the newest nor the best.
 * @param checkpoints highest step first
 */
export function marksOf(checkpoints: readonly Given[], spec: Rules): ReadonlyMap<string, readonly Mark[]> {
  const whole = checkpoints.filter(({ damaged }) => !damaged);
  const newest = whole[0];
  const best = bestOf(whole, spec);
  return new Map(
    checkpoints.map((checkpoint) => [
      checkpoint.id,
      (
        [
          ['newest', checkpoint === newest],
          ['best', checkpoint === best],
          ['pinned', checkpoint.pinned],
          ['damaged', checkpoint.damaged],
        ] as const
      ).flatMap(([mark, has]) => (has ? [mark] : [])),
    ]),
  );
}

/**
 * The best one as the run counts it: that of early stopping, or the one with the best figure of its first evaluation.
 */
function bestOf(whole: readonly Given[], { train, checkpoint: { keep } }: Rules): Given | undefined {
  if (train.early_stopping) return whole.find(({ step }) => step === whole[0]?.best_step);
  const [first] = whole.flatMap(({ eval_losses = {} }) => Object.keys(eval_losses));
  const metric = keep.best_metric ?? metricOf(first ?? VALIDATION, train);
  const figure = ({ eval_losses }: Given) => figureOf(eval_losses, metric);
  const [best] = whole
    .filter((checkpoint) => typeof figure(checkpoint) === 'number')
    .sort((a, b) => compareFigures(metric, figure(a), figure(b)) || a.step - b.step);
  return best;
}

/** The metric by which a run is judged: that of early stopping, or the one of its first evaluation. */
export function judgedBy({ spec, progress: { evaluations = {} } }: Pick<Job, 'spec' | 'progress'>): string {
  const { train, checkpoint } = spec;
  const [first = VALIDATION] = Object.keys(evaluations);
  return train.early_stopping?.metric ?? checkpoint.keep.best_metric ?? metricOf(first, train);
}

/** The best figure of the metric by which a run is judged; null without one. */
export function bestEvaluation(job: Pick<Job, 'spec' | 'progress'>): number | null {
  return job.progress.evaluations?.[evaluationOf(judgedBy(job)) ?? '']?.best_loss ?? null;
}
