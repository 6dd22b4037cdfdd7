import type { Sweep, SweepPlan, SweepSpec } from '../../contracts/types.js';
import { allPages, type ListQuery } from './pages.js';
import { pause } from './pause.js';
import { bodyOf, type Http } from './transport.js';

const INTERVAL_MS = 1000;

/** Sweeps: jobs of one document with different values, compared by their evaluation. */
export class Sweeps {
  constructor(private readonly http: Http) {}

  /** Creates a sweep; the server begins its runs. */
  async create(spec: SweepSpec, { idempotencyKey = crypto.randomUUID() } = {}): Promise<Sweep> {
    const header = { 'Idempotency-Key': idempotencyKey };
    const request = this.http.POST('/v1/sweeps', { params: { header }, body: spec });
    const answer = await bodyOf('create a sweep', request);
    if ('id' in answer) return answer;
    throw new Error('the API answered with a dry run instead of a sweep');
  }

  /** Returns the runs of the planned sweep; nothing is recorded. */
  async dryRun(spec: SweepSpec): Promise<SweepPlan> {
    const params = { query: { dry_run: true } };
    const answer = await bodyOf('check a sweep', this.http.POST('/v1/sweeps', { params, body: spec }));
    if (!('id' in answer)) return answer;
    throw new Error('the API created the sweep of a dry run');
  }

  get(sweepId: string, { signal }: { signal?: AbortSignal } = {}): Promise<Sweep> {
    const params = { path: { sweep_id: sweepId } };
    return bodyOf(
      `sweep ${sweepId}`,
      this.http.GET('/v1/sweeps/{sweep_id}', { params, ...(signal && { signal }) }),
    );
  }

  /** Sweeps, newest first. */
  list(query: ListQuery<'listSweeps'> = {}): AsyncIterable<Sweep> {
    return allPages((after) =>
      bodyOf('list of sweeps', this.http.GET('/v1/sweeps', { params: { query: { ...query, after } } })),
    );
  }

  /** Begins no more runs and pauses the jobs of those that train. */
  pause(sweepId: string): Promise<Sweep> {
    const params = { path: { sweep_id: sweepId } };
    return bodyOf(`pause ${sweepId}`, this.http.POST('/v1/sweeps/{sweep_id}/pause', { params }));
  }

  resume(sweepId: string): Promise<Sweep> {
    const params = { path: { sweep_id: sweepId } };
    return bodyOf(`resume ${sweepId}`, this.http.POST('/v1/sweeps/{sweep_id}/resume', { params }));
  }

  /** Ends the sweep and cancels its unfinished jobs. */
  cancel(sweepId: string): Promise<Sweep> {
    const params = { path: { sweep_id: sweepId } };
    return bodyOf(`cancel ${sweepId}`, this.http.POST('/v1/sweeps/{sweep_id}/cancel', { params }));
  }

  /** Deletes the record of a sweep that has ended; its jobs stay. */
  async delete(sweepId: string): Promise<void> {
    const params = { path: { sweep_id: sweepId } };
    await bodyOf(`delete ${sweepId}`, this.http.DELETE('/v1/sweeps/{sweep_id}', { params }));
  }

  /** Waits until the sweep has ended. @param onSweep called with every state that was read */
  async wait(
    sweepId: string,
    { onSweep, signal }: { onSweep?: (sweep: Sweep) => void; signal?: AbortSignal } = {},
  ): Promise<Sweep> {
    for (;;) {
      const sweep = await this.get(sweepId, signal && { signal });
      onSweep?.(sweep);
      if (sweep.ended_at !== null) return sweep;
      await pause(INTERVAL_MS, signal);
    }
  }
}
