import { type Execution, epochOf, executionOf } from '../../contracts/execution.js';
import type { JobStore } from '../job-store.js';

const granted = new Map<string, Execution>();

/** Wraps a store so that tests may look up its granted executions by epoch. */
export function noteExecutions(store: JobStore): JobStore {
  return {
    ...store,
    async claimAttempt(jobId, ...rest) {
      const claim = await store.claimAttempt(jobId, ...rest);
      if (claim.granted) granted.set(`${jobId} ${epochOf(claim.execution)}`, claim.execution);
      return claim;
    },
  };
}

/** Returns the execution of the claim that began an epoch; an unused execution where no claim was granted. */
export function executionAt(jobId: string, epoch: number): Execution {
  return granted.get(`${jobId} ${epoch}`) ?? executionOf(epoch, 'none');
}
