import { execFile } from 'node:child_process';
import { userInfo } from 'node:os';
import { promisify } from 'node:util';
import { programPath } from '../../platform/process/programs.js';
import { ThreadPool } from '../../platform/threads/thread-pool.js';
import type { JobRecord, SlurmJob } from './job.js';
import type { ParserTasks } from './thread-main.js';

const run = promisify(execFile);

/** Slurm's own commands retry for longer while its controller is away. */
const TIMEOUT_MS = 8_000;
/** Slurm 22.05 lists the jobs of all users, with about 3 KB each. */
const MAX_OUTPUT_BYTES = 256 * 1024 ** 2;
/** Limits of parsing it. */
const [PARSE_MS, PARSE_HEAP_MB, PARSER_IDLE_MS] = [8_000, 2_048, 60_000];

export interface Submission {
  /** Options of `sbatch`. */
  options: readonly string[];
  script: string;
  /** Environment of the allocation. */
  env: NodeJS.ProcessEnv;
}

/** Commands of Slurm as plain data. Each runs as a child process with a time limit; errors have its message. */
export class SlurmCommands {
  private readonly user = userInfo().username;
  private readonly parser = new ThreadPool<ParserTasks>({
    module: programPath('autoscaler/slurm/thread-main'),
    threads: 1,
    heap_mb: PARSE_HEAP_MB,
    task_ms: PARSE_MS,
    idle_ms: PARSER_IDLE_MS,
    limited: (limit) => new Error(`the output of Slurm exceeds the limit of ${limit} for parsing it`),
  });

  /**
   * @param env environment of the commands, with PATH and, where it is not the default, SLURM_CONF
   * @param timeoutMs time limit of a command
   */
  constructor(
    private readonly env: NodeJS.ProcessEnv,
    private readonly timeoutMs = TIMEOUT_MS,
  ) {}

  /** Lists this user's jobs of an installation, ended ones as long as Slurm keeps them. */
  async jobs(installation: string): Promise<SlurmJob[]> {
    const output = await this.run('squeue', ['--json', '--states=all', `--user=${this.user}`]);
    const jobs = await this.parser.run('queue', { output, installation });
    return jobs.filter(({ user }) => user === this.user);
  }

  /** Reads ended jobs from the accounting. @throws Error without an accounting database */
  async records(ids: readonly number[]): Promise<JobRecord[]> {
    const output = await this.run('sacct', ['--json', '--allocations', `--jobs=${ids.join(',')}`]);
    const records = await this.parser.run('records', { output });
    return records.filter(({ id }) => ids.includes(id));
  }

  /** Submits a job. @returns its id */
  async submit({ options, script, env }: Submission): Promise<number> {
    const text = String(await this.run('sbatch', ['--parsable', ...options], { env, input: script }));
    // The id, and the cluster after a semicolon.
    const id = /^(\d+)(;|$)/.exec(text.trim())?.[1];
    if (id === undefined) throw new Error(`sbatch printed no job id: ${text.slice(0, 200)}`);
    return Number(id);
  }

  /** Ends jobs, or only those of them in one state. Does nothing with jobs that have ended. */
  async cancel(ids: readonly number[], state?: 'PENDING'): Promise<void> {
    if (ids.length === 0) return;
    await this.run('scancel', ['--quiet', ...(state ? [`--state=${state}`] : []), ...ids.map(String)]);
  }

  /** Sends SIGTERM to the agents of jobs alone. */
  async terminateAgents(ids: readonly number[]): Promise<void> {
    await this.run('scancel', ['--quiet', '--batch', '--signal=TERM', ...ids.map(String)]);
  }

  /** Ends the parser. Idempotent. */
  close(): Promise<void> {
    return this.parser.close();
  }

  private async run(
    command: string,
    args: readonly string[],
    { env = this.env, input }: { env?: NodeJS.ProcessEnv; input?: string } = {},
  ): Promise<Buffer> {
    const running = run(command, [...args], {
      env,
      timeout: this.timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: MAX_OUTPUT_BYTES,
      encoding: 'buffer',
    });
    // A command that ends early closes its input; its own error says more.
    running.child.stdin?.on('error', () => undefined).end(input);
    try {
      return (await running).stdout;
    } catch (error) {
      throw new Error(this.problemOf(command, error), { cause: error });
    }
  }

  private problemOf(command: string, error: unknown): string {
    const { code, killed, stderr = '' } = error as { code?: unknown; killed?: boolean; stderr?: unknown };
    if (code === 'ENOENT') return `${command} is not on the PATH: install Slurm's client commands`;
    if (killed) return `${command} did not end within ${this.timeoutMs / 1000} s`;
    const said = String(stderr).trim().split('\n').slice(-2).join('; ').slice(0, 500);
    return `${command} failed: ${said || String((error as Error).message).slice(0, 500)}`;
  }
}
