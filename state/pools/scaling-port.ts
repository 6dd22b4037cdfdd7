/** The port of whoever gives pools their machines: what is asked for, and how a machine is taken out of use. */

/** What one job asks of its pool, in ranks. */
export interface JobDemandRecord {
  id: string;
  project: string;
  priority: number;
  /** Fewest and most that it would run on now, and what its number has to be a multiple of. */
  need: number;
  want: number;
  multiple: number;
  /** What it has; 0 for one that waits. */
  held: number;
}

/** An agent that is alive. */
export interface WorkerUse {
  id: string;
  /** The machine that it runs on; null where it was not told. */
  machine: string | null;
  /** The scope of bit-exactness of its ranks; those of one job have the same. */
  numerics: string | null;
  slots: number;
  /** Slots that no job holds and new work may have. */
  free: number;
  /** Whether a job holds places on it. */
  busy: boolean;
  /** Nothing new begins on it. */
  draining: boolean;
  /** Because `retireWorkers` was called for it. */
  retiring: boolean;
}

export interface PoolDemand {
  name: string;
  /** Those with ranks, then those that wait or will after a pause, by when they began to. */
  jobs: JobDemandRecord[];
  workers: WorkerUse[];
  /** Most ranks of the projects of `jobs` that have such a quota. */
  quotas: Record<string, number>;
}

export type LeadResult = { leads: true; memory: string } | { leads: false; holder: string };

export interface Scaling {
  /** What pools ask for now, in the order of their names. A worker may be seen a moment later than the jobs. */
  readDemand(pools: readonly string[]): Promise<PoolDemand[]>;
  /**
   * From now on nothing new begins on any of the workers, if nothing runs on any of them. All or none, in one step.
   * @returns those that are busy; empty: all are retired. Workers that are not known are neither
   */
  retireWorkers(workerIds: readonly string[]): Promise<string[]>;
  /**
   * Takes or keeps an office that one program at a time has, for `ttlMs`; 0 gives it up.
   * @param memory what its holder remembers, for whoever has it next; undefined leaves it as it is
   */
  lead(office: string, holder: string, ttlMs: number, memory?: string): Promise<LeadResult>;
  /** Everything on a machine was handed back, and it may be ended. Remembered for a day. */
  reportDrained(machine: string): Promise<void>;
  /** Machines of which that was said. */
  drainedMachines(): Promise<string[]>;
}
