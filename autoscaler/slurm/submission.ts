/** Slurm job of one machine: the options of `sbatch`, its script and environment. */
import type { MachineType, PoolPolicy } from '../../platform/config/autoscale-pools.js';
import { DEFAULT_SLURM_OPTIONS, type SlurmOptions } from '../../platform/config/slurm-options.js';
import type { Submission } from './commands.js';

export interface AgentProgram {
  /** Program of an agent and its arguments, where a type names none. */
  command: readonly string[];
  /** Environment of all agents. */
  env: NodeJS.ProcessEnv;
  /** Directory of their logs. */
  log_dir: string;
}

/** Returns the submission of a machine of a pool's type. @param name name of the job */
export function submissionOf(
  { pool }: Pick<PoolPolicy, 'pool'>,
  { slots, slurm = DEFAULT_SLURM_OPTIONS }: MachineType,
  name: string,
  { command, env, log_dir }: AgentProgram,
): Submission {
  return {
    options: [
      `--job-name=${name}`,
      // Slurm starts no two jobs of one name at once, even if two autoscalers submit them.
      '--dependency=singleton',
      '--nodes=1',
      '--ntasks=1',
      // Only the agent gets the signal: it saves and ends its ranks itself.
      `--signal=B:TERM@${slurm.drain_seconds}`,
      slurm.requeue ? '--requeue' : '--no-requeue',
      '--open-mode=append',
      `--output=${slurm.log_dir ?? log_dir}/%j.log`,
      '--export=ALL',
      ...allocationOptions(slurm),
      ...slurm.arguments,
    ],
    script: scriptOf(slurm, slurm.command ?? command),
    env: {
      // An agent without GPUs of its own must not take those of others on its node.
      ...(!hasGpus(slurm) && { ZEROFLEET_DEVICE: 'cpu' }),
      ...env,
      ZEROFLEET_POOL: pool,
      ZEROFLEET_SLOTS: String(slots),
      ZEROFLEET_PREEMPTION_SOURCE: 'slurm',
    },
  };
}

const hasGpus = ({ gres, arguments: given }: SlurmOptions) =>
  gres !== undefined || given.some((argument) => /^--(gpus|tres)/.test(argument));

function allocationOptions(slurm: SlurmOptions): string[] {
  const { account, partition, qos, reservation, constraint, gres } = slurm;
  const values = {
    account,
    partition,
    qos,
    reservation,
    constraint,
    gres,
    'cpus-per-task': slurm.cpus,
    mem: slurm.memory_mb && `${slurm.memory_mb}M`,
    time: slurm.time_minutes,
    'time-min': slurm.time_min_minutes,
  };
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`],
  );
}

/**
 * The agent replaces the shell, so it receives the signals of its allocation. Agents of a user on a node share a data
 * directory, which no other user can have made. It holds only the cache of prepared data and is bounded.
 */
function scriptOf({ data_dir, setup }: SlurmOptions, command: readonly string[]): string {
  const dir = data_dir ? quoted(data_dir) : `"\${SLURM_TMPDIR:-\${TMPDIR:-/tmp}}/zerofleet-$(id -u)"`;
  return `#!/bin/sh
# Agent of zerofleet.
export ZEROFLEET_MACHINE_ID="slurm-$SLURM_JOB_ID\${SLURM_RESTART_COUNT:+-$SLURM_RESTART_COUNT}"
export ZEROFLEET_DATA_DIR=${dir}
mkdir -p -m 700 "$ZEROFLEET_DATA_DIR"
[ -O "$ZEROFLEET_DATA_DIR" ] || { echo "$ZEROFLEET_DATA_DIR belongs to another user" >&2; exit 1; }
${setup.map((line) => `${line}\n`).join('')}exec ${command.map(quoted).join(' ')}
`;
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
