/**
 * Real Slurm cluster for tests: munged, slurmctld and one slurmd for each made-up node. All of it runs as the current
 * user in one temporary directory, on loopback. Needs no accounting database, cgroups or systemd.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from './free-port.js';
import { Killer } from './killer.js';
import { ensurePrograms } from './programs.js';
import { until, untilDone } from './waiting.js';

const run = promisify(execFile);
const PROGRAMS = ['munged', 'slurmctld', 'slurmd', 'sbatch', 'squeue', 'scancel'];
const PACKAGES = ['munge', 'slurmctld', 'slurmd', 'slurm-client'];
const COMMAND_TIMEOUT_MS = 30_000;

interface SlurmOptions {
  /** Number of nodes, named n1, n2, …, of four processors each. */
  nodes: number;
  /** Time that preempted jobs of the partition `main` have to end. */
  grace_seconds?: number;
  /** Time between SIGTERM and SIGKILL. */
  kill_seconds?: number;
}

/** Partitions: `main`, and `urgent`, whose jobs preempt those of `main`. */
export interface TestSlurm {
  /** Environment of Slurm's commands. */
  readonly env: { SLURM_CONF: string };
  /** Runs a command of Slurm. Returns its output. */
  run(command: string, ...args: string[]): Promise<string>;
  /** Ends the daemon and all jobs of a node at once, as a power failure. */
  killNode(name: string): Promise<void>;
  startNode(name: string): Promise<void>;
  /** Ends all processes and removes all files. Idempotent. */
  stop(): Promise<void>;
}

/** Returns null when Slurm can be started here (installing it first as root), else the reason for a test's `skip`. */
export function whyNoSlurm(): Promise<string | null> {
  return ensurePrograms(PROGRAMS, PACKAGES);
}

/** Starts a cluster; takes a few seconds. */
export async function startSlurm(options: SlurmOptions): Promise<TestSlurm> {
  const cluster = new Cluster(await mkdtemp(join(tmpdir(), 'zf-slurm-')), options);
  try {
    await cluster.start();
    return cluster;
  } catch (error) {
    const logs = await cluster.logs();
    await cluster.stop();
    throw new Error(`Slurm did not start: ${String(error)}\n${logs}`, { cause: error });
  }
}

class Cluster implements TestSlurm {
  readonly env: { SLURM_CONF: string };
  private readonly daemons = new Map<string, ChildProcess>();
  private readonly killer: Killer;

  constructor(
    private readonly dir: string,
    private readonly options: SlurmOptions,
  ) {
    this.env = { SLURM_CONF: join(dir, 'slurm.conf') };
    this.killer = new Killer(`SLURM_CONF=${this.env.SLURM_CONF}`);
  }

  async start(): Promise<void> {
    const { dir } = this;
    for (const part of ['state', 'spool', 'log']) await mkdir(join(dir, part));
    await writeFile(join(dir, 'munge.key'), randomBytes(1024), { mode: 0o400 });
    await writeFile(this.env.SLURM_CONF, await this.configText());
    const munge = ['socket', 'key-file', 'pid-file', 'log-file', 'seed-file'];
    const files = munge.map((name) => `--${name}=${join(dir, `munge.${name.split('-')[0]}`)}`);
    this.daemon('munged', ['--foreground', '--force', ...files]);
    await untilDone(() => run('munge', ['-n', `--socket=${join(dir, 'munge.socket')}`]));
    this.daemon('slurmctld', ['-D', '-i']);
    for (const name of this.nodes()) await this.startNode(name);
    await until(async () => (await this.states()).every((state) => state === 'idle'));
  }

  async run(command: string, ...args: string[]): Promise<string> {
    const env = { ...process.env, ...this.env };
    return (await run(command, args, { env, timeout: COMMAND_TIMEOUT_MS })).stdout;
  }

  async startNode(name: string): Promise<void> {
    this.daemon('slurmd', ['-D', '-N', name], name);
  }

  async killNode(name: string): Promise<void> {
    const daemon = this.daemons.get(name);
    this.daemons.delete(name);
    // Slurm has started the agents' parents, which report how they end.
    for (const { pid, parent } of agentsOf(this.env.SLURM_CONF, name)) {
      for (const each of [parent, pid]) process.kill(each, 'SIGKILL');
    }
    if (!daemon) return;
    const ended = once(daemon, 'exit');
    daemon.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    await this.killer.killAll();
    await rm(this.dir, { recursive: true, force: true });
  }

  async logs(): Promise<string> {
    const names = ['munged', 'slurmctld', ...this.nodes()];
    const texts = names.map((name) => readFile(join(this.dir, 'log', name), 'utf8').catch(() => ''));
    return (await Promise.all(texts)).map((text) => text.slice(-1000)).join('\n');
  }

  private nodes(): string[] {
    return Array.from({ length: this.options.nodes }, (_, index) => `n${index + 1}`);
  }

  private async states(): Promise<string[]> {
    const text = await this.run('sinfo', '--noheader', '--Node', '--partition=main', '--format=%t').catch(
      () => 'unknown',
    );
    return text.trim().split(/\s+/);
  }

  private daemon(program: string, args: string[], name = program): void {
    const env = { ...process.env, ...this.env };
    this.daemons.set(name, spawn(program, args, { cwd: this.dir, stdio: 'ignore', env }));
  }

  private async configText(): Promise<string> {
    const { dir } = this;
    const { nodes, grace_seconds = 0, kill_seconds = 30 } = this.options;
    const user = userInfo().username;
    const ports = await Promise.all(Array.from({ length: nodes + 1 }, freePort));
    const lines = this.nodes().map(
      (name, index) =>
        `NodeName=${name} NodeHostname=localhost NodeAddr=127.0.0.1 Port=${ports[index]} CPUs=4 RealMemory=4000`,
    );
    return `ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=${ports[nodes]}
SlurmUser=${user}
SlurmdUser=${user}
AuthType=auth/munge
AuthInfo=socket=${dir}/munge.socket
StateSaveLocation=${dir}/state
SlurmdSpoolDir=${dir}/spool/%n
SlurmctldPidFile=${dir}/slurmctld.pid
SlurmdPidFile=${dir}/%n.pid
SlurmctldLogFile=${dir}/log/slurmctld
SlurmdLogFile=${dir}/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# The nodes need not be as large as they claim.
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
ReturnToService=2
SlurmdTimeout=10
KillWait=${kill_seconds}
${lines.join('\n')}
PartitionName=main Nodes=ALL Default=YES PriorityTier=1 GraceTime=${grace_seconds}
PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF
`;
  }
}

/** First processes of the jobs on a node, and the parent of each. */
function agentsOf(config: string, node: string): { pid: number; parent: number }[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const env = readFileSync(`/proc/${name}/environ`, 'utf8').split('\0');
      if (!env.includes(`SLURM_CONF=${config}`) || !env.includes(`SLURMD_NODENAME=${node}`)) return [];
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      const isFirst = readFileSync(`/proc/${parent}/cmdline`, 'utf8').startsWith('slurmstepd');
      return isFirst ? [{ pid: Number(name), parent }] : [];
    } catch {
      // It is no process, belongs to another user, or has exited meanwhile.
      return [];
    }
  });
}
