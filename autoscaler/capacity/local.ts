import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { Logger } from '../../platform/logging/logging.js';
import { LocalAgent } from './local-agent.js';
import type { Capacity, CapacityView } from './port.js';

export interface LocalCapacityOptions {
  /** Absolute path of the worker's main module. */
  program: string;
  /** What all agents are told; pool, slots, machine and data directory are added. */
  env: Record<string, string | undefined>;
  /** Below it each agent has a directory of its own, which the next one in its place finds again. */
  data_dir: string;
  log: Logger;
}

interface LocalMachine {
  id: string;
  pool: string;
  type: string;
  /** Its place among the agents: the number of its directory. */
  place: number;
  leaving: boolean;
  agent: LocalAgent;
}

const MIN_RESTART_MS = 1_000;
const MAX_RESTART_MS = 60_000;
/** An agent that lived this long may be started again soon. */
const HEALTHY_MS = 30_000;

/**
 * Machines that are agents on this machine, as child processes. They live no longer than this object: what they run is saved and
 * goes back to its queue.
 */
export class LocalCapacity implements Capacity {
  private readonly machines = new Map<string, LocalMachine>();
  private readonly wanted = new Map<string, { policy: PoolPolicy; type: string; machines: number }>();
  private readonly restarts = new Set<NodeJS.Timeout>();
  private restart_ms = MIN_RESTART_MS;
  private closed: Promise<void> | null = null;

  constructor(private readonly options: LocalCapacityOptions) {}

  async view({ pool, types }: PoolPolicy): Promise<CapacityView> {
    const machines = [...this.machines.values()]
      .filter((machine) => machine.pool === pool)
      .map(({ id, type, leaving }) => ({ id, type, leaving }));
    const wanted = types.map(
      ({ name }) => [name, this.wanted.get(keyOf(pool, name))?.machines ?? 0] as const,
    );
    return { machines, wanted: Object.fromEntries(wanted) };
  }

  async want(policy: PoolPolicy, type: string, machines: number): Promise<void> {
    this.wanted.set(keyOf(policy.pool, type), { policy, type, machines });
    this.fill();
  }

  async retire({ pool }: PoolPolicy, id: string): Promise<void> {
    const machine = this.machines.get(id);
    if (!machine || machine.leaving) return;
    machine.leaving = true;
    const wanted = this.wanted.get(keyOf(pool, machine.type));
    if (wanted) wanted.machines = Math.max(0, wanted.machines - 1);
    void machine.agent.stop();
  }

  /** An agent here takes the time that it needs. */
  async hold(): Promise<void> {}

  close(): Promise<void> {
    this.closed ??= this.endAll();
    return this.closed;
  }

  private async endAll(): Promise<void> {
    for (const timer of this.restarts) clearTimeout(timer);
    await Promise.all([...this.machines.values()].map(({ agent }) => agent.stop()));
  }

  /** Starts what is wanted and not there. */
  private fill(): void {
    if (this.closed) return;
    for (const { policy, type, machines } of this.wanted.values()) {
      const there = [...this.machines.values()].filter(
        (machine) => machine.pool === policy.pool && machine.type === type && !machine.leaving,
      );
      for (let count = there.length; count < machines; count += 1) this.start(policy, type);
    }
  }

  private start({ pool, types }: PoolPolicy, type: string): void {
    const { program, env, data_dir, log } = this.options;
    const places = new Set([...this.machines.values()].map((machine) => machine.place));
    let place = 0;
    while (places.has(place)) place += 1;
    const id = `local-${place}-${randomUUID().slice(0, 8)}`;
    const slots = types.find(({ name }) => name === type)?.slots ?? 1;
    const agent = new LocalAgent({
      program,
      env: {
        // Several agents of one machine would each take all of its GPUs.
        ZEROFLEET_DEVICE: 'cpu',
        ...env,
        ZEROFLEET_POOL: pool,
        ZEROFLEET_SLOTS: String(slots),
        ZEROFLEET_MACHINE_ID: id,
        ZEROFLEET_DATA_DIR: join(data_dir, 'agents', String(place)),
      },
    });
    const machine: LocalMachine = { id, pool, type, place, leaving: false, agent };
    this.machines.set(id, machine);
    const started_at = Date.now();
    log.info({ machine: id, pool, type, pid: agent.pid }, 'agent started');
    void agent.exited.then(() => this.ended(machine, Date.now() - started_at));
  }

  /** One that ended by itself is replaced, as a group of machines would replace it, but not in a tight loop. */
  private ended(machine: LocalMachine, lived_ms: number): void {
    this.machines.delete(machine.id);
    if (machine.leaving || this.closed) return;
    this.restart_ms = lived_ms > HEALTHY_MS ? MIN_RESTART_MS : Math.min(2 * this.restart_ms, MAX_RESTART_MS);
    this.options.log.warn({ machine: machine.id, again_in_ms: this.restart_ms }, 'an agent ended by itself');
    const timer = setTimeout(() => {
      this.restarts.delete(timer);
      this.fill();
    }, this.restart_ms);
    this.restarts.add(timer);
  }
}

const keyOf = (pool: string, type: string) => `${pool}/${type}`;
