/**
 * One claim of a job by a worker, `<epoch>-<token>`: the epoch grows with every claim of the job, the token is random.
 * Every write of the claim's holder carries it. An epoch may repeat when Redis fails over to a replica that missed a
 * claim; an execution never does.
 */
export type Execution = `${number}-${string}`;

/**  @param token unique letters and digits */
export function executionOf(epoch: number, token: string): Execution {
  return `${epoch}-${token}`;
}

export function epochOf(execution: Execution): number {
  return Number.parseInt(execution, 10);
}

/**
 * True if `execution` precedes `other`. Two executions with the same epoch have no order: one of them holds the job,
 * and the names do not tell which.
 */
export function isBefore(execution: Execution, other: Execution): boolean {
  return epochOf(execution) < epochOf(other);
}
