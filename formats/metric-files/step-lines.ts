/** A table of steps in the columns of OpenAI's result files, as far as they exist here. */
import type { JobMetric } from '../../contracts/index.js';

/** Name of the evaluation on OpenAI's `validation_file`. */
export const VALIDATION_FILE = 'validation_file';

export const STEP_LINES_HEAD = 'step,train_loss,valid_loss\n';

/** Returns the line of a step: ASCII, so it has as many bytes as characters. A mean reward is no loss. */
export function stepLine({
  step,
  loss,
  eval_losses,
  reinforcement,
}: Pick<JobMetric, 'step' | 'loss' | 'eval_losses' | 'reinforcement'>): string {
  const validLoss = reinforcement ? undefined : eval_losses?.[VALIDATION_FILE];
  return `${step},${loss ?? ''},${validLoss ?? ''}\n`;
}
