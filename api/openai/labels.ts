/** Names by which a job keeps what its document has no field for. */

export { VALIDATION_FILE } from '../../formats/metric-files/step-lines.js';

/** Labels of a job; all other ones are its `metadata`. */
export const LABELS = {
  model: 'openai/model',
  suffix: 'openai/suffix',
  epochs: 'openai/n_epochs',
  multiplier: 'openai/learning_rate_multiplier',
} as const;
