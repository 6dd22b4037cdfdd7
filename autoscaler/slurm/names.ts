/** Names of Slurm jobs: `zerofleet/<installation>/<pool>/<type>/<number>`. */

/** Identity of one allocation among those of an installation. No two allocations that run have the same. */
export interface AllocationName {
  pool: string;
  type: string;
  number: number;
}

const PREFIX = 'zerofleet';

export function nameOf(installation: string, { pool, type, number }: AllocationName): string {
  return [PREFIX, installation, pool, type, number].join('/');
}

/** Parses the name of a job; null if it belongs to another installation or is no agent's. */
export function parseName(installation: string, name: string): AllocationName | null {
  const [prefix, owner, pool = '', type = '', number = '', ...rest] = name.split('/');
  if (prefix !== PREFIX || owner !== installation || rest.length > 0) return null;
  return /^\d{1,6}$/.test(number) ? { pool, type, number: Number(number) } : null;
}

/** Machine id of an allocation, as its script computes it; Slurm restarts a requeued job with the same id. */
export function machineOf(job: number, restarts: number): string {
  return restarts === 0 ? `slurm-${job}` : `slurm-${job}-${restarts}`;
}
