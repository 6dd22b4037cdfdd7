import { ZerofleetError } from '../../contracts/index.js';
import type { Principal } from '../../state/index.js';
import type { Operation } from '../operations.js';

/**
 * Limits a share to the operations of the contract that have `x-shared`, and to its job. Every other principal passes.
 * @throws ZerofleetError `outside_share`; `job_not_found` for another job, as for one that does not exist
 */
export function requireShared(
  { share }: Pick<Principal, 'share'>,
  operation: Operation,
  params: unknown,
): void {
  if (share === null) return;
  if (!operation.isShared)
    throw new ZerofleetError('outside_share', `the share reads ${share.job_id} only, and changes nothing`);
  const { job_id } = params as { job_id?: string };
  if (job_id !== undefined && job_id !== share.job_id)
    throw new ZerofleetError('job_not_found', `there is no job ${job_id}`);
}
