/** Stand-in for the commands of Slurm: a queue in memory with nodes that start its jobs in order. */
import type { Submission } from '../slurm/commands.js';
import type { JobRecord, SlurmJob } from '../slurm/job.js';
import { parseName } from '../slurm/names.js';
import type { SlurmCapacityOptions } from '../slurm/slurm-capacity.js';

type Commands = SlurmCapacityOptions['commands'];

export class SlurmStandIn implements Commands {
  readonly queue = new Map<number, SlurmJob>();
  readonly submissions: Submission[] = [];
  /** Jobs that were cancelled, in order. */
  readonly cancelled: number[] = [];
  /** Jobs whose agents got SIGTERM alone. */
  readonly terminated: number[] = [];
  /** Jobs in the accounting; null: there is none. */
  accounting: JobRecord[] | null = null;
  /** Calls of `jobs` and `records`. */
  readonly calls: string[] = [];
  /** Message of sbatch, which refuses every job. */
  refuses: string | null = null;
  private last = 0;

  constructor(private readonly clock: () => number) {}

  async close(): Promise<void> {}

  async jobs(installation: string): Promise<SlurmJob[]> {
    this.calls.push('jobs');
    return [...this.queue.values()]
      .filter(({ name }) => parseName(installation, name) !== null)
      .map((job) => ({ ...job }));
  }

  async records(ids: readonly number[]): Promise<JobRecord[]> {
    this.calls.push('records');
    if (!this.accounting) throw new Error('sacct failed: Slurm accounting storage is disabled');
    return this.accounting.filter(({ id }) => ids.includes(id));
  }

  async submit(submission: Submission): Promise<number> {
    if (this.refuses) throw new Error(`sbatch failed: ${this.refuses}`);
    this.submissions.push(submission);
    const name = submission.options.find((option) => option.startsWith('--job-name='))?.slice(11) ?? '';
    this.last += 1;
    this.queue.set(this.last, {
      id: this.last,
      name,
      user: 'me',
      states: ['PENDING'],
      reason: 'Resources',
      starts_at: 0,
      ends_at: 0,
      preempted_at: 0,
      restarts: 0,
    });
    return this.last;
  }

  async cancel(ids: readonly number[], state?: 'PENDING'): Promise<void> {
    for (const id of ids) {
      const job = this.queue.get(id);
      if (!job || (state && !job.states.includes(state))) continue;
      this.cancelled.push(id);
      job.states = job.states.includes('RUNNING') ? ['CANCELLED', 'COMPLETING'] : ['CANCELLED'];
    }
  }

  async terminateAgents(ids: readonly number[]): Promise<void> {
    this.terminated.push(...ids);
  }

  /** Starts jobs. @param limitMs their time limit */
  start(ids: readonly number[], limitMs = 86_400_000): void {
    const now = this.clock();
    for (const id of ids)
      this.change(id, { states: ['RUNNING'], reason: 'None', starts_at: now, ends_at: now + limitMs });
  }

  end(id: number, state: string, reason = 'None'): void {
    this.change(id, { states: [state], reason, ends_at: this.clock() });
  }

  change(id: number, fields: Partial<SlurmJob>): void {
    const job = this.queue.get(id);
    if (job) Object.assign(job, fields);
  }
}
