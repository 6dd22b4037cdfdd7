import type { Control, PoolSlots, WorkerSlots } from '../../../state/index.js';
import type { Lease } from '../lease/lease.js';
import type { StopRequests } from './stop-requests.js';

interface ResizerOptions {
  store: Pick<PoolSlots, 'adjustPlacements'>;
  lease: Lease;
  stops: StopRequests;
}

/**
 * Requests a new generation when the job should continue with another number of ranks or other overrides. The
 * generation saves at its next step boundary, the placement is adjusted, and the next generation loads the save: the
 * result stays the same, bit for bit.
 */
export class Resizer {
  /** World size of the running generation; null between generations. */
  private worldSize: number | null = null;
  /** Hash of the overrides of the running generation. */
  private overrides = '';

  constructor(private readonly options: ResizerOptions) {}

  /**
   * Returns the placement of the next generation, which satisfies pending requests for another size.
   * @returns null when the job has to release all of its slots
   */
  async place(): Promise<WorkerSlots[] | null> {
    const { lease, stops, store } = this.options;
    stops.withdraw('resize');
    stops.withdraw('update');
    return lease.call((id, execution) => store.adjustPlacements(id, execution));
  }

  begin(worldSize: number, overrides: string): void {
    this.worldSize = worldSize;
    this.overrides = overrides;
  }

  end(): void {
    this.worldSize = null;
  }

  /** Handles the control data of the job store, which come with every renewal of the lease and after every change. */
  onControl({ requested_ranks, held_ranks, overrides, preemption_request, moves }: Control): void {
    const { stops } = this.options;
    if (preemption_request === 0) {
      stops.request('preempt');
      return;
    }
    stops.withdraw('preempt');
    if (this.worldSize === null) return;
    if (overrides !== this.overrides) stops.request('update');
    // The slots are allocated before the ranks stop, so no stop is useless.
    else if (moves || held_ranks > this.worldSize) stops.request('resize');
    else if (Math.min(requested_ranks, preemption_request ?? requested_ranks) < this.worldSize)
      stops.request('resize');
  }
}
