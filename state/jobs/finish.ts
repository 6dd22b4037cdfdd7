import type { Execution } from '../../contracts/execution.js';
import {
  canTransition,
  type FinalJobState,
  JOB_STATES,
  type Job,
  type JobExport,
  type JobFailure,
} from '../../contracts/index.js';
import { nowText, type StoreContext } from '../core/context.js';
import { jobOf, type RecordReply } from './record.js';

export interface FinishOptions {
  reason?: string | null;
  failure?: JobFailure | null;
  export?: JobExport | null;
}

/**
 * Returns the states from which the state table leads to `to`. The commands check against the result, so the table is
 * written only once.
 */
export function statesBefore(to: Job['state']): Job['state'][] {
  return JOB_STATES.filter((from) => canTransition(from, to));
}

/**
 * Sets a final state. No other function calls the command, and no other command sets a final state.
 * @returns null when `execution` is null and a worker holds the job
 */
export async function finish(
  { commands }: StoreContext,
  jobId: string,
  execution: Execution | null,
  state: FinalJobState,
  { reason, failure, export: exported }: FinishOptions,
): Promise<Job | null> {
  const [outcome, ...record] = await commands.run('finish_job', {
    job_id: jobId,
    execution: execution ?? undefined,
    state,
    from: statesBefore(state),
    reason: reason ?? undefined,
    failure: failure ? JSON.stringify(failure) : '',
    export: exported ? JSON.stringify(exported) : '',
    at: nowText(),
  });
  return outcome === 'busy' ? null : jobOf(record as RecordReply);
}
