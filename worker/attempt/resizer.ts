import type { Control, Place, PoolPlaces } from '../../state/index.js';
import type { Lease } from '../lease/lease.js';
import type { StopRequests } from './stop-requests.js';

export interface ResizerOptions {
  store: Pick<PoolPlaces, 'adjustPlaces'>;
  lease: Lease;
  stops: StopRequests;
}

/**
 * Tells a generation when it should go on with another number of ranks, or with other overrides. It then saves at its next step
 * boundary, the places are fitted to what is wanted, and the next generation loads what was saved: the result stays the same,
 * bit for bit.
 */
export class Resizer {
  /** Ranks of the generation that runs; null between two of them. */
  private world_size: number | null = null;
  /** Those of the generation that runs, as their hash. */
  private overrides = '';

  constructor(private readonly options: ResizerOptions) {}

  /**
   * The places of the next generation. The wish for other ranks is met by it, whatever it gets.
   * @returns null when the job has to give all of them up
   */
  async place(): Promise<Place[] | null> {
    const { lease, stops, store } = this.options;
    stops.withdraw('resize');
    stops.withdraw('update');
    return lease.call((id, execution) => store.adjustPlaces(id, execution));
  }

  begin(world_size: number, overrides: string): void {
    this.world_size = world_size;
    this.overrides = overrides;
  }

  end(): void {
    this.world_size = null;
  }

  /** What the job store says is wanted; it says so at every renewal of the lease and after every change. */
  onControl({ requested_ranks, held_ranks, overrides, ask }: Control): void {
    const { stops } = this.options;
    if (ask === 0) {
      stops.request('preempt');
      return;
    }
    stops.withdraw('preempt');
    if (this.world_size === null) return;
    if (overrides !== this.overrides) stops.request('update');
    // The slots are there before the ranks stop: nothing stops in vain.
    else if (held_ranks > this.world_size) stops.request('resize');
    else if (Math.min(requested_ranks, ask ?? requested_ranks) < this.world_size) stops.request('resize');
  }
}

export function countRanks(places: readonly Place[]): number {
  return places.reduce((ranks, { slots }) => ranks + slots, 0);
}
