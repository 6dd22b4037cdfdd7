/** Facts about a job that every tracker receives. */
import {
  type FinalJobState,
  type Integration,
  isFinal,
  type Job,
  type ResolvedJobSpec,
} from '../../contracts/index.js';

/** A job in a final state. */
export type EndedJob = Job & { state: FinalJobState };

export function hasEnded(job: Job): job is EndedJob {
  return isFinal(job.state);
}

export function runNameOf({ id, name }: Job, { run_name }: Integration): string {
  return run_name ?? (name || id);
}

/**
 * The sections of the document on which the training depends. `train.overrides` may change later, and a param of MLflow
 * may not.
 */
export function sectionsOf({ model, data, train, zero }: ResolvedJobSpec) {
  const { overrides: _, ...fixed } = train;
  return { model, data, train: fixed, zero };
}

/** Facts about the end of a job. */
export function outcomeOf({ state, latest_checkpoint, export: exported }: EndedJob): Record<string, string> {
  const checkpoint = exported?.checkpoint_id ?? latest_checkpoint?.id;
  const digest = exported?.state_digest ?? latest_checkpoint?.state_digest;
  return {
    'zerofleet.state': state,
    ...(checkpoint !== undefined && { 'zerofleet.checkpoint_id': checkpoint }),
    ...(digest !== undefined && { 'zerofleet.state_digest': digest }),
  };
}
