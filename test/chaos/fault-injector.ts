import { setTimeout as sleep } from 'node:timers/promises';
import { type FaultyS3, NO_FAULTS, type StoreFaults } from './faulty-s3.js';
import type { ChaosFleet } from './fleet.js';
import type { Random } from './random.js';

/** Relative frequency of each kind of fault. */
const WEIGHTS = {
  kill_rank: 30,
  stop_rank: 12,
  kill_agent: 10,
  stop_agent: 10,
  drain_agent: 10,
  vacate_agent: 10,
  kill_api: 8,
  stop_api: 4,
  kill_redis: 6,
  stop_redis: 5,
  store: 20,
} as const;
type Kind = keyof typeof WEIGHTS;
type ProcessKind = Exclude<Kind, 'store' | 'vacate_agent'>;
/** A drained agent saves, releases its jobs and exits. */
const SIGNALS = { kill: 'SIGKILL', stop: 'SIGSTOP', drain: 'SIGTERM' } as const;

const PAUSE_MS = { least: 1_000, most: 6_000 };
/** Sometimes longer than a lease, so that another agent claims the job meanwhile. */
const STOPPED_MS = { least: 300, most: 9_000 };
const STORE_FAULT_MS = { least: 500, most: 4_000 };
const STORE_FAULTS: readonly StoreFaults[] = [
  { ...NO_FAULTS, refused: 0.3 },
  { ...NO_FAULTS, refused: 1 },
  { ...NO_FAULTS, cut: 0.3 },
  { ...NO_FAULTS, slow: 0.5, delay_ms: 700 },
  { refused: 0.15, cut: 0.15, slow: 0.2, delay_ms: 300 },
];

const KINDS = Object.keys(WEIGHTS) as Kind[];

/** Injects a random fault every few seconds: each kind once in random order, then by weight. */
export class FaultInjector {
  readonly counts: Record<Kind, number> = {
    kill_rank: 0,
    stop_rank: 0,
    kill_agent: 0,
    stop_agent: 0,
    drain_agent: 0,
    vacate_agent: 0,
    kill_api: 0,
    stop_api: 0,
    kill_redis: 0,
    stop_redis: 0,
    store: 0,
  };
  /** Stopped processes that will be continued, and store faults that will end. */
  private readonly pending = new Set<Promise<void>>();
  /** Kinds that have not been injected yet. */
  private readonly outstanding = new Set(KINDS);

  constructor(
    private readonly fleet: ChaosFleet,
    private readonly agents: number,
    private readonly store: FaultyS3 | null,
    private readonly random: Random,
  ) {}

  /** Runs until `signal`; resolves when every stopped process continues. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.random.between(PAUSE_MS.least, PAUSE_MS.most), undefined, { signal }).catch(
        () => undefined,
      );
      if (signal.aborted) break;
      const first = this.random.pick([...this.outstanding]);
      if (first === undefined || !(await this.disturb(first)))
        await this.disturb(this.random.weighted(WEIGHTS));
    }
    await Promise.all(this.pending);
  }

  /** @returns false if there was nothing to disturb */
  private async disturb(kind: Kind): Promise<boolean> {
    if (kind === 'store') return this.troubleStore();
    return kind === 'vacate_agent' ? this.vacate() : this.disturbProcess(kind);
  }

  /** Moves the jobs of an agent to another one and ends it a little later, as an autoscaler does. */
  private async vacate(): Promise<boolean> {
    const agent = this.anyAgent();
    const pid = this.fleet.pidOf(agent);
    if (pid === undefined || !(await this.fleet.vacate(agent).catch(() => false))) return false;
    this.count('vacate_agent');
    this.later(STOPPED_MS, () => signalTo(pid, SIGNALS.drain));
    return true;
  }

  private anyAgent(): string {
    return `agent-${this.random.between(0, this.agents - 1)}`;
  }

  private async disturbProcess(kind: ProcessKind): Promise<boolean> {
    const pid = await this.victimOf(kind);
    if (pid === undefined) return false;
    const signal = SIGNALS[verbOf(kind)];
    if (!signalTo(pid, signal)) return false;
    this.count(kind);
    if (signal === 'SIGSTOP') this.later(STOPPED_MS, () => signalTo(pid, 'SIGCONT'));
    return true;
  }

  private async victimOf(kind: ProcessKind): Promise<number | undefined> {
    switch (kind) {
      case 'kill_rank':
      case 'stop_rank':
        return this.random.pick(this.fleet.ranks())?.pid;
      case 'kill_agent':
      case 'stop_agent':
      case 'drain_agent':
        return this.fleet.pidOf(this.anyAgent());
      case 'kill_api':
      case 'stop_api':
        return this.fleet.pidOf('api');
      case 'kill_redis':
      case 'stop_redis':
        return this.fleet.redis.victim();
    }
  }

  private troubleStore(): boolean {
    const { store } = this;
    const faults = this.random.pick(STORE_FAULTS);
    if (!store || !faults) return false;
    this.count('store');
    store.faults = faults;
    this.later(STORE_FAULT_MS, () => {
      if (store.faults === faults) store.faults = NO_FAULTS;
    });
    return true;
  }

  private count(kind: Kind): void {
    this.counts[kind]++;
    this.outstanding.delete(kind);
  }

  private later({ least, most }: { least: number; most: number }, action: () => void): void {
    const done = sleep(this.random.between(least, most)).then(() => {
      action();
      this.pending.delete(done);
    });
    this.pending.add(done);
  }
}

function verbOf(kind: ProcessKind): keyof typeof SIGNALS {
  if (kind === 'drain_agent') return 'drain';
  return kind.startsWith('kill') ? 'kill' : 'stop';
}

/** False if the process has exited. */
function signalTo(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
