import type { JobEvent } from '../../contracts/types.js';

/** Answers of a checkpoint to the prompts of its job's document, in their order. */
export interface StepAnswers {
  step: number;
  checkpoint_id: string;
  /** Empty if the checkpoint did not answer. */
  answers: string[];
  /** Why the checkpoint did not answer; null if it did. */
  error: string | null;
}

/** Returns the answers that an event reports, or null. */
export function answersIn({ type, data }: Pick<JobEvent, 'type' | 'data'>): StepAnswers | null {
  const { step, checkpoint_id, answers, message } = data as Omit<StepAnswers, 'error'> & { message: string };
  if (type === 'samples.answered') return { step, checkpoint_id, answers, error: null };
  if (type === 'samples.failed') return { step, checkpoint_id, answers: [], error: message };
  return null;
}
