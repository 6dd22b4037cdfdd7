/** A stack as on several machines: Redis, the API, and worker agents that join and leave, each in its own process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { collect, type Zerofleet } from '../../clients/typescript/index.js';
import type { Job, JobEvent, Worker } from '../../contracts/index.js';
import { programPath } from '../../platform/process/programs.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis, type TestRedis } from '../../platform/testing/redis.js';
import { MARK, type MarkedProcess, markedProcesses } from '../chaos/marked-processes.js';
import { cleanEnvironment, type Owner, startStack } from './stack.js';

const STOP_TIMEOUT_MS = 60_000;
const POLL_MS = 50;
const REDIS_PORT = 6379;

interface AgentOptions {
  slots: number;
  env?: Record<string, string>;
  /** Command that runs the program, e.g. on another host; the program and its arguments are appended. */
  launcher?: readonly string[];
  /** Replaces the worker's main module. */
  program?: string;
}

/** Ranks of one job on one worker. */
interface RankPlacement {
  worker_id: string;
  slots: number;
}

/** A worker agent. */
export interface TestAgent {
  pid: number;
  /** Its record in the pool. */
  worker: Worker;
  /** SIGTERM, as by a service manager; resolves with the exit code. */
  stop(): Promise<number | null>;
}

export class Cluster {
  private readonly agents: ChildProcess[] = [];
  /** Mark in the environment of every agent and all its descendants. */
  private readonly mark = randomUUID();

  private constructor(
    readonly client: Zerofleet,
    private readonly redis: TestRedis,
    private readonly dir: string,
    /** Variables of its Redis and object store. */
    readonly env: Readonly<Record<string, string>>,
  ) {}

  /** A cluster without agents; it ends with the test. */
  static async start(t: Owner): Promise<Cluster> {
    const dir = mkdtempSync(join(tmpdir(), 'zf-cluster-'));
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    const redis = await startTestRedis();
    t.teardown(() => redis.stop());
    const objects = join(dir, 'objects');
    mkdirSync(objects);
    const env = {
      ZEROFLEET_REDIS_URL: redis.url,
      ZEROFLEET_OBJECT_STORE: pathToFileURL(objects).href,
    };
    const { client } = await startStack(t, { args: ['--api-only'], data_dir: join(dir, 'api'), env });
    const cluster = new Cluster(client, redis, dir, env);
    t.teardown(() => cluster.killAgents());
    return cluster;
  }

  /** Makes Redis reachable at another address of this machine. Returns its URL. */
  async listen(address: string): Promise<string> {
    const redis = await connectRedis(this.redis.url, 'commands');
    // The network contains only hosts of the test.
    await redis.config('SET', 'protected-mode', 'no');
    await redis.config('SET', 'bind', address);
    await redis.config('SET', 'port', String(REDIS_PORT));
    await disconnectRedis(redis);
    return `redis://${address}:${REDIS_PORT}`;
  }

  /** Starts an agent; resolves when it accepts jobs. */
  async agent({ slots, env, launcher = [], program }: AgentOptions): Promise<TestAgent> {
    const main = program ?? programPath('worker/agent/main');
    const [command = process.execPath, ...args] = [...launcher, process.execPath, main];
    const child = spawn(command, args, {
      env: {
        ...cleanEnvironment(),
        ...this.env,
        [MARK]: this.mark,
        ZEROFLEET_DATA_DIR: join(this.dir, `agent-${this.agents.length}`),
        // These tests are independent of GPUs, of which a machine may have too few.
        ZEROFLEET_DEVICE: 'cpu',
        ZEROFLEET_SLOTS: String(slots),
        ZEROFLEET_THREADS_PER_RANK: '1',
        ZEROFLEET_LOG_LEVEL: process.env.ZF_TEST_LOG ?? 'silent',
        ...env,
      },
      // An agent ends when this channel closes, so that nothing outlives a killed test process.
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.agents.push(child);
    const exited = once(child, 'exit');
    const ended = exited.then(([code, signal]) => {
      throw new Error(`the agent ended while it started: ${code ?? signal}`);
    });
    const worker = await Promise.race([this.untilAnnounced(child.pid), ended]);
    return {
      pid: worker.pid,
      worker,
      stop: async () => {
        child.kill('SIGTERM');
        const force = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
        const [code] = await exited;
        clearTimeout(force);
        return code;
      },
    };
  }

  /** Waits until the pool has a worker with this process id. */
  async untilAnnounced(pid: number | undefined): Promise<Worker> {
    for (;;) {
      const worker = (await this.client.workers()).find((candidate) => candidate.pid === pid);
      if (worker) return worker;
      await sleep(POLL_MS);
    }
  }

  /** Waits until a job trains on this number of ranks. Fails if it ends before. */
  async untilRanks(id: string, ranks: number): Promise<Job> {
    const trains = ({ state, world_size }: Job) => state === 'running' && world_size === ranks;
    const job = await this.client.jobs.until(id, trains, { interval_ms: POLL_MS });
    if (!trains(job)) throw new Error(`the job is ${job.state}: ${JSON.stringify(job.failure)}`);
    return job;
  }

  /** Waits until a job has completed `steps` more steps. */
  async untilMoreSteps(id: string, steps: number): Promise<Job> {
    const { progress } = await this.client.jobs.get(id);
    return this.client.jobs.until(id, (job) => job.progress.step >= progress.step + steps, {
      interval_ms: POLL_MS,
    });
  }

  /** Events of one type, in order. */
  async events(id: string, type: string): Promise<JobEvent[]> {
    return (await collect(this.client.jobs.events(id))).filter((event) => event.type === type);
  }

  /** Placements of each generation of a job, the leader first. */
  async placements(id: string): Promise<RankPlacement[][]> {
    return (await this.events(id, 'training.started')).map(({ data }) => data.placements as RankPlacement[]);
  }

  /** Processes of live and dead agents, and all their descendants. */
  processes(): MarkedProcess[] {
    return markedProcesses(this.mark);
  }

  /** Rank processes, including those of dead agents. */
  ranks(): MarkedProcess[] {
    return this.processes().filter(({ command }) => command.includes('rank/main.js'));
  }

  private async killAgents(): Promise<void> {
    const running = this.agents.filter(
      ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
    );
    await Promise.all(
      running.map((child) => {
        const exited = once(child, 'exit');
        child.kill('SIGKILL');
        return exited;
      }),
    );
  }
}
