import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Zerofleet } from '../../clients/typescript/index.js';
import { programPath } from '../../platform/process/programs.js';
import { freePort } from '../../platform/testing/free-port.js';
import { testProgram } from '../../platform/testing/test-program.js';
import { untilDone } from '../../platform/testing/waiting.js';
import { openJobStore } from '../../state/index.js';
import { cleanEnvironment } from '../support/stack.js';
import { MARK, type MarkedProcess, markedProcesses } from './marked-processes.js';
import { type ChaosRedis, type RedisKind, startChaosRedis } from './redis.js';

interface FleetOptions {
  dir: string;
  agents: number;
  slots: number;
  redis: RedisKind;
  /** Object store settings of every process. */
  store: Record<string, string>;
}

const API_KEY = 'chaos-test-key-0123456789abcdef';
/** Restart delay of a service manager. */
const RESTART_MS = 200;
const STOP_TIMEOUT_MS = 60_000;

/**
 * Redis, one API and some agents as under a service manager: each is restarted whenever it exits. All of them and their
 * descendants carry a mark in their environment.
 */
export class ChaosFleet {
  readonly client: Zerofleet;
  private readonly programs = new Map<string, ChildProcess>();
  private readonly restarters: Promise<void>[] = [];
  private ending = false;
  starts = 0;

  private constructor(
    private readonly options: FleetOptions,
    readonly mark: string,
    private readonly port: number,
    readonly redis: ChaosRedis,
  ) {
    const baseUrl = `http://127.0.0.1:${port}`;
    // The tests retry their own requests.
    this.client = new Zerofleet({ baseUrl, apiKey: API_KEY, retry: { tries: 1 } });
  }

  static async start(options: FleetOptions, mark: string): Promise<ChaosFleet> {
    // This process starts Redis, which inherits its environment.
    process.env[MARK] = mark;
    const redis = await startChaosRedis(options.redis, options.dir);
    const fleet = new ChaosFleet(options, mark, await freePort(), redis);
    fleet.restarters.push(fleet.keep('api', programPath('api/main')));
    const agent = testProgram('test/chaos/agent-main');
    for (let i = 0; i < options.agents; i++) fleet.restarters.push(fleet.keep(`agent-${i}`, agent));
    await fleet.untilReady();
    return fleet;
  }

  /** Process id of `api` or `agent-N`; undefined while it is not running. */
  pidOf(name: string): number | undefined {
    return this.programs.get(name)?.pid;
  }

  /** Moves the jobs of an agent to others. @returns false if they do not fit there */
  async vacate(agent: string): Promise<boolean> {
    const pid = this.pidOf(agent);
    const store = await openJobStore({ url: this.redis.url });
    try {
      const worker = (await store.listWorkers()).find((other) => other.pid === pid);
      return worker !== undefined && (await store.vacateWorkers(worker.pool, [worker.id]));
    } finally {
      await store.close();
    }
  }

  /** Rank processes, including those of dead agents. */
  ranks(): MarkedProcess[] {
    return this.marked().filter(({ command }) => command.includes('rank/main.js'));
  }

  /** All processes of the fleet except this one. */
  marked(): MarkedProcess[] {
    return markedProcesses(this.mark).filter(({ pid }) => pid !== process.pid);
  }

  /** SIGTERM for all, Redis last, as at the shutdown of a machine. */
  async stop(): Promise<void> {
    this.ending = true;
    const running = [...this.programs.values()].filter(
      (child) => child.exitCode === null && child.signalCode === null,
    );
    for (const child of running) child.kill('SIGTERM');
    const force = setTimeout(() => {
      for (const child of running) child.kill('SIGKILL');
    }, STOP_TIMEOUT_MS);
    await Promise.all(this.restarters);
    clearTimeout(force);
    await this.redis.stop();
    delete process.env[MARK];
  }

  private async keep(name: string, program: string): Promise<void> {
    const dataDir = join(this.options.dir, name);
    await mkdir(dataDir, { recursive: true });
    while (!this.ending) {
      this.starts++;
      const child = spawn(process.execPath, [program], {
        env: {
          ...cleanEnvironment(),
          [MARK]: this.mark,
          ZEROFLEET_DATA_DIR: dataDir,
          ZEROFLEET_REDIS_URL: this.redis.url,
          ZEROFLEET_LOG_LEVEL: process.env.CHAOS_LOG_LEVEL ?? 'silent',
          ...this.options.store,
          ...(name === 'api'
            ? { ZEROFLEET_PORT: String(this.port), ZEROFLEET_API_KEY: API_KEY }
            : {
                ZEROFLEET_DEVICE: 'cpu',
                ZEROFLEET_SLOTS: String(this.options.slots),
                ZEROFLEET_THREADS_PER_RANK: '1',
              }),
        },
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      this.programs.set(name, child);
      await once(child, 'exit');
      if (!this.ending) await sleep(RESTART_MS);
    }
  }

  private async untilReady(): Promise<void> {
    await untilDone(async () => {
      const { ok, status } = await fetch(new URL('/readyz', this.client.options.baseUrl));
      if (!ok) throw new Error(`the API is not ready: HTTP ${status}`);
    });
  }
}
