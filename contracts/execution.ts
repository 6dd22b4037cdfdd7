/**
 * One claim of a job by a worker, `<epoch>-<token>`: the epoch grows with every claim of the job, the token is random. Whatever the holder
 * of the claim writes carries it. An epoch comes twice when Redis fails over to a replica that missed a claim; an execution never does.
 */
export type Execution = `${number}-${string}`;

/** @param token letters and digits that no other claim has */
export function executionOf(epoch: number, token: string): Execution {
  return `${epoch}-${token}`;
}

export function epochOf(execution: Execution): number {
  return Number.parseInt(execution, 10);
}

/** Whether `execution` came before `other`. Of two of the same epoch neither did: only one of them has the job, and names don't say which. */
export function isBefore(execution: Execution, other: Execution): boolean {
  return epochOf(execution) < epochOf(other);
}
