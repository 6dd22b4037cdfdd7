/** Every Redis key begins with this; the braces put all of them into one hash slot, so scripts may touch several. */
export const REDIS_PREFIX = '{zf}';

/** A BullMQ entry says which attempt of which job is due. It carries no state: the job store has that. */
export interface QueuePayload {
  job_id: string;
  attempt: number;
}

/** Name of the BullMQ queue of a worker pool. */
export function queueName(pool: string): string {
  return `pool-${pool}`;
}

/** BullMQ job id of an attempt: adding the same attempt twice leaves one entry. */
export function queueJobId(payload: QueuePayload): string {
  return `${payload.job_id}-${payload.attempt}`;
}
