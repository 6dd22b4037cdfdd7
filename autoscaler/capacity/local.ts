import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { Logger } from '../../platform/logging/logging.js';
import { LocalAgent } from './local-agent.js';
import { keyOf } from './machine-types.js';
import type { Capacity, CapacityView } from './port.js';

interface LocalCapacityOptions {
  /** Absolute path of the worker's main module. */
  program: string;
  /** Environment of all agents; pool, slots, machine and data directory are added. */
  env: Record<string, string | undefined>;
  /** Parent of the agents' data directories. An agent reuses the directory of the one that it replaces. */
  data_dir: string;
  log: Logger;
}

interface LocalMachine {
  id: string;
  pool: string;
  type: string;
  /** Number of the agent's directory. */
  index: number;
  terminating: boolean;
  agent: LocalAgent;
}

const MIN_RESTART_MS = 1_000;
const MAX_RESTART_MS = 60_000;
/** The restart backoff is reset by an agent that ran this long. */
const HEALTHY_MS = 30_000;

/**
 * Machines as child processes on this machine: one agent each. They live no longer than this object; on close
 * their jobs are saved and return to the queue.
 */
export class LocalCapacity implements Capacity {
  private readonly machines = new Map<string, LocalMachine>();
  private readonly wanted = new Map<string, { policy: PoolPolicy; type: string; machines: number }>();
  private readonly restarts = new Set<NodeJS.Timeout>();
  private restartMs = MIN_RESTART_MS;
  private closed: Promise<void> | null = null;

  constructor(private readonly options: LocalCapacityOptions) {}

  async refresh(): Promise<void> {}

  async view({ pool, types }: PoolPolicy): Promise<CapacityView> {
    const machines = [...this.machines.values()]
      .filter((machine) => machine.pool === pool)
      .map(({ id, type, terminating }) => ({ id, type, terminating }));
    const wanted = types.map(
      ({ name }) => [name, this.wanted.get(keyOf(pool, name))?.machines ?? 0] as const,
    );
    return { machines, wanted: Object.fromEntries(wanted), problems: [] };
  }

  async want(policy: PoolPolicy, type: string, machines: number): Promise<void> {
    this.wanted.set(keyOf(policy.pool, type), { policy, type, machines });
    this.fill();
  }

  async retire({ pool }: PoolPolicy, id: string): Promise<void> {
    const machine = this.machines.get(id);
    if (!machine || machine.terminating) return;
    machine.terminating = true;
    const wanted = this.wanted.get(keyOf(pool, machine.type));
    if (wanted) wanted.machines = Math.max(0, wanted.machines - 1);
    void machine.agent.stop();
  }

  /** Does nothing: a local agent stops in its own time. */
  async hold(): Promise<void> {}

  close(): Promise<void> {
    this.closed ??= this.stopAll();
    return this.closed;
  }

  private async stopAll(): Promise<void> {
    for (const timer of this.restarts) clearTimeout(timer);
    await Promise.all([...this.machines.values()].map(({ agent }) => agent.stop()));
  }

  /** Starts the machines that are missing. */
  private fill(): void {
    if (this.closed) return;
    for (const { policy, type, machines } of this.wanted.values()) {
      const running = [...this.machines.values()].filter(
        (machine) => machine.pool === policy.pool && machine.type === type && !machine.terminating,
      );
      for (let count = running.length; count < machines; count += 1) this.start(policy, type);
    }
  }

  private start({ pool, types }: PoolPolicy, type: string): void {
    const { program, env, data_dir, log } = this.options;
    const indexes = new Set([...this.machines.values()].map((machine) => machine.index));
    let index = 0;
    while (indexes.has(index)) index += 1;
    const id = `local-${index}-${randomUUID().slice(0, 8)}`;
    const slots = types.find(({ name }) => name === type)?.slots ?? 1;
    const agent = new LocalAgent({
      program,
      env: {
        // Several agents on one machine would each claim all of its GPUs.
        ZEROFLEET_DEVICE: 'cpu',
        ...env,
        ZEROFLEET_POOL: pool,
        ZEROFLEET_SLOTS: String(slots),
        ZEROFLEET_MACHINE_ID: id,
        ZEROFLEET_DATA_DIR: join(data_dir, 'agents', String(index)),
      },
    });
    const machine: LocalMachine = { id, pool, type, index, terminating: false, agent };
    this.machines.set(id, machine);
    const startedAt = Date.now();
    log.info({ machine: id, pool, type, pid: agent.pid }, 'agent started');
    void agent.exited.then(() => this.ended(machine, Date.now() - startedAt));
  }

  /** Replaces an agent that exited by itself, as a machine group would, with backoff. */
  private ended(machine: LocalMachine, livedMs: number): void {
    this.machines.delete(machine.id);
    if (machine.terminating || this.closed) return;
    this.restartMs = livedMs > HEALTHY_MS ? MIN_RESTART_MS : Math.min(2 * this.restartMs, MAX_RESTART_MS);
    this.options.log.warn(
      { machine: machine.id, again_in_ms: this.restartMs },
      'an agent exited unexpectedly',
    );
    const timer = setTimeout(() => {
      this.restarts.delete(timer);
      this.fill();
    }, this.restartMs);
    this.restarts.add(timer);
  }
}
