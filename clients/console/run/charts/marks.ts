/** Checkpoints of a run that stand out. */
import type { Checkpoint, Job } from '../../../../contracts/types.js';

export type Mark = 'newest' | 'best' | 'pinned' | 'damaged';

type Given = Pick<Checkpoint, 'id' | 'step' | 'pinned' | 'damaged' | 'eval_losses' | 'best_step'>;
type Rules = {
  train: Pick<Job['spec']['train'], 'early_stopping'>;
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
 * The best one as the run counts it: that of early stopping, or the one with the lowest loss of its first evaluation.
 */
function bestOf(whole: readonly Given[], { train, checkpoint: { keep } }: Rules): Given | undefined {
  if (train.early_stopping) return whole.find(({ step }) => step === whole[0]?.best_step);
  const [first] = whole.flatMap(({ eval_losses = {} }) => Object.keys(eval_losses));
  const name = keep.best_metric === undefined ? first : evaluationOf(keep.best_metric);
  const lossOf = ({ eval_losses }: Given) => eval_losses?.[name ?? ''] ?? Number.POSITIVE_INFINITY;
  const [best] = whole.toSorted((a, b) => lossOf(a) - lossOf(b) || a.step - b.step);
  return best && Number.isFinite(lossOf(best)) ? best : undefined;
}

/** The lowest loss of the evaluation by which a run is judged: that of early stopping, or the first one. */
export function bestEvaluation({ spec, progress: { evaluations = {} } }: Pick<Job, 'spec' | 'progress'>) {
  const metric = spec.train.early_stopping?.metric ?? spec.checkpoint.keep.best_metric;
  const name = metric === undefined ? Object.keys(evaluations)[0] : evaluationOf(metric);
  return evaluations[name ?? '']?.best_loss ?? null;
}

/** Name of the evaluation of a metric: `eval_loss` is that of `validation`, `eval_loss/code` that of `code`. */
const evaluationOf = (metric: string) => metric.split('/')[1] ?? 'validation';
