/** Resources that the ranks of a world use, as their heartbeats report them. */
import type { SystemUse } from '../../../contracts/index.js';
import type { HeartbeatMessage } from '../../../contracts/rank-protocol.js';

type Measured = Pick<
  HeartbeatMessage,
  'memory_bytes' | 'cpu_seconds' | 'sent_bytes' | 'gpu_busy' | 'uptime_seconds'
>;

/** Ranks whose use is stored. With the interval this bounds what the metrics of a job need. */
const MEASURED_RANKS = 16;
/** Time between two measurements. The first one comes with the second heartbeats, as a training may be short. */
const INTERVAL_S = { first: 0, next: 5 };

export class SystemWatch {
  /** By rank. */
  private readonly newest: Measured[] = [];
  /** At the previous measurement, or at the first heartbeat. */
  private readonly previous: Measured[] = [];
  /** How busy the GPU of each rank was at its heartbeats since the previous measurement. */
  private readonly busy: number[][] = [];
  private readonly numRanks: number;
  private intervalS = INTERVAL_S.first;

  constructor(worldSize: number) {
    this.numRanks = Math.min(worldSize, MEASURED_RANKS);
  }

  measured(rank: number, measured: Measured): void {
    if (rank >= this.numRanks) return;
    this.newest[rank] = measured;
    this.previous[rank] ??= measured;
    if (measured.gpu_busy === null) return;
    this.busy[rank] ??= [];
    this.busy[rank].push(measured.gpu_busy);
  }

  /** Returns the mean use of each rank since the previous measurement; null until all ranks have reported again. */
  take(): SystemUse | null {
    const use: SystemUse = { cpu: [], memory_bytes: [], sent_bytes: [] };
    for (let rank = 0; rank < this.numRanks; rank++) {
      const [now, before] = [this.newest[rank], this.previous[rank]];
      if (now === undefined || before === undefined) return null;
      const seconds = now.uptime_seconds - before.uptime_seconds;
      if (seconds <= this.intervalS) return null;
      use.cpu.push(rounded((now.cpu_seconds - before.cpu_seconds) / seconds, 100));
      use.memory_bytes.push(now.memory_bytes);
      use.sent_bytes.push(rounded((now.sent_bytes - before.sent_bytes) / seconds, 1));
    }
    const busy = this.busy.splice(0);
    if (Object.keys(busy).length === this.numRanks)
      use.gpu = busy.map((shares) => rounded(mean(shares), 100));
    this.intervalS = INTERVAL_S.next;
    for (const [rank, measured] of this.newest.entries()) this.previous[rank] = measured;
    return use;
  }
}

/** Rounds to a fraction, because metrics store these values. */
const rounded = (value: number, denominator: number) =>
  Math.max(0, Math.round(value * denominator) / denominator);

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
