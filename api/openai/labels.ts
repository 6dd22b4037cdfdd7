/** Names by which a job keeps what its document has no field for. */

/** Name of the evaluation on `validation_file`. */
export const VALIDATION_FILE = 'validation_file';

/** Labels of a job; all other ones are its `metadata`. */
export const LABELS = {
  model: 'openai/model',
  suffix: 'openai/suffix',
  epochs: 'openai/n_epochs',
  multiplier: 'openai/learning_rate_multiplier',
} as const;
