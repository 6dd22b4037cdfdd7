import { type Execution, epochOf, executionOf } from '../../contracts/execution.js';
import type { JobStorePort } from '../port.js';

const granted = new Map<string, Execution>();

/** The same store; tests may call what it grants by its epoch. */
export function noteExecutions(store: JobStorePort): JobStorePort {
  return {
    ...store,
    async claimAttempt(jobId, ...rest) {
      const claim = await store.claimAttempt(jobId, ...rest);
      if (claim.granted) granted.set(`${jobId} ${epochOf(claim.execution)}`, claim.execution);
      return claim;
    },
  };
}

/** Of the claim with which an epoch of a job began; where none was granted, one that nobody has. */
export function executionAt(jobId: string, epoch: number): Execution {
  return granted.get(`${jobId} ${epoch}`) ?? executionOf(epoch, 'none');
}
