import type { Control, Place, PoolPlaces } from '../../platform/job-store/index.js';
import type { Logger } from '../../platform/logging.js';
import type { Lease } from './lease.js';
import type { StopRequests } from './stop-requests.js';

export interface ResizerOptions {
  store: Pick<PoolPlaces, 'adjustPlaces'>;
  lease: Lease;
  stops: StopRequests;
  interval_ms: number;
  log: Logger;
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
  private requested: number | null = null;
  private next_try = 0;
  private growing = false;

  constructor(private readonly options: ResizerOptions) {}

  /**
   * The places of the next generation. The wish for other ranks is met by it, whatever it gets.
   * @returns null when the job has to give all of them up
   */
  async place(): Promise<Place[] | null> {
    const { lease, stops, store } = this.options;
    stops.withdraw('resize');
    stops.withdraw('update');
    return lease.call((id, epoch) => store.adjustPlaces(id, epoch, { spread: true }));
  }

  begin(world_size: number, overrides: string): void {
    this.world_size = world_size;
    this.overrides = overrides;
    this.next_try = performance.now() + this.options.interval_ms;
  }

  end(): void {
    this.world_size = null;
  }

  /** What the job store says is wanted; it says so at every renewal of the lease and after every change. */
  onControl({ requested_ranks, overrides, ask }: Control): void {
    const { stops } = this.options;
    const changed = this.requested !== null && this.requested !== requested_ranks;
    this.requested = requested_ranks;
    if (ask === 0) {
      stops.request('preempt');
      return;
    }
    stops.withdraw('preempt');
    if (this.world_size !== null && overrides !== this.overrides) {
      stops.request('update');
    } else if (this.world_size !== null) {
      const due = changed || performance.now() >= this.next_try;
      if (Math.min(requested_ranks, ask ?? requested_ranks) < this.world_size) stops.request('resize');
      else if (requested_ranks > this.world_size && due && !this.growing) void this.grow(this.world_size);
    }
  }

  /** The slots are reserved before the ranks stop: nothing stops in vain. */
  private async grow(world_size: number): Promise<void> {
    const { interval_ms, lease, log, stops, store } = this.options;
    this.growing = true;
    this.next_try = performance.now() + interval_ms;
    try {
      const places = await store.adjustPlaces(lease.job_id, lease.epoch, { spread: true, grow: true });
      if (places && countRanks(places) > world_size && this.world_size === world_size)
        stops.request('resize');
    } catch (error) {
      log.warn({ err: error }, 'no more ranks asked for');
    } finally {
      this.growing = false;
    }
  }
}

export function countRanks(places: readonly Place[]): number {
  return places.reduce((ranks, { slots }) => ranks + slots, 0);
}
