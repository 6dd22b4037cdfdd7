/** Slurm allocation of a machine type: the options of `sbatch` and the start of the agent. */
import { type Static, Type } from '../schema.js';

/** Value of an option of `sbatch`. */
const Value = Type.String({ pattern: '^[^\\s-]\\S{0,254}$' });
const Line = Type.String({ pattern: '^[^\\n\\r\\0]{1,1000}$' });
const Path = Type.String({ pattern: '^/[^\\n\\r\\0]{0,1000}$' });

export const SlurmOptions = Type.Object(
  {
    account: Type.Optional(Value),
    partition: Type.Optional(Value),
    qos: Type.Optional(Value),
    reservation: Type.Optional(Value),
    /** Features of the nodes, as `a100&ib`. */
    constraint: Type.Optional(Value),
    /** Generic resources, as `gpu:a100:4`. Without any, ranks run on the CPU. */
    gres: Type.Optional(Value),
    cpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 4096 })),
    memory_mb: Type.Optional(Type.Integer({ minimum: 1 })),
    /** Time limit of an allocation; by default the partition's. */
    time_minutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    /** Shortest time limit to which Slurm may reduce `time_minutes` for an earlier start. */
    time_min_minutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    /** Time before the time limit at which the agent saves and returns its jobs. */
    drain_seconds: Type.Integer({ minimum: 10, maximum: 65_535, default: 120 }),
    /** True: Slurm starts an allocation again that it preempted or whose node failed. */
    requeue: Type.Boolean({ default: false }),
    /** Further options of `sbatch`, each `--name` or `--name=value`. */
    arguments: Type.Array(Type.String({ pattern: '^--[a-z][a-z0-9-]*(=[^\\n\\r\\0]*)?$' }), {
      maxItems: 50,
      default: [],
    }),
    /** Lines of shell that run before the agent, as `module load cuda`. */
    setup: Type.Array(Line, { maxItems: 50, default: [] }),
    /** Program of the agent and its arguments; by default this installation's, with this Node.js. */
    command: Type.Optional(Type.Array(Line, { minItems: 1, maxItems: 50 })),
    /** Directory of the agent on the node; by default one for the user below SLURM_TMPDIR, TMPDIR or /tmp. */
    data_dir: Type.Optional(Path),
    /** Directory of the agents' logs, which every node must have; by default `slurm` in the data directory. */
    log_dir: Type.Optional(Path),
  },
  { additionalProperties: false },
);

export type SlurmOptions = Static<typeof SlurmOptions>;

/** Options of a type that has none. */
export const DEFAULT_SLURM_OPTIONS: SlurmOptions = {
  drain_seconds: 120,
  requeue: false,
  arguments: [],
  setup: [],
};

/** Options of `sbatch` by which the autoscaler finds and ends allocations. */
const RESERVED = [
  ...['array', 'batch', 'chdir', 'dependency', 'error', 'export', 'export-file', 'hold', 'het-group'],
  ...['input', 'job-name', 'kill-on-invalid-dep', 'no-requeue', 'nodes', 'ntasks', 'output', 'parsable'],
  ...['quiet', 'requeue', 'signal', 'test-only', 'uid', 'wait', 'wrap', 'clusters', 'cluster', 'begin'],
];

/** Returns what is wrong with options that fit the schema; null for nothing. */
export function slurmProblem({
  arguments: given,
  time_minutes,
  time_min_minutes,
  drain_seconds,
}: SlurmOptions): string | null {
  // `sbatch` accepts every unambiguous prefix of a name.
  const reserved = given.find((argument) => RESERVED.some((name) => name.startsWith(nameOf(argument))));
  if (reserved !== undefined) return `the autoscaler itself sets --${nameOf(reserved)} of sbatch`;
  if (time_min_minutes !== undefined && time_min_minutes > (time_minutes ?? 0))
    return 'time_min_minutes needs a time_minutes that is not shorter';
  const shortest = time_min_minutes ?? time_minutes;
  if (shortest !== undefined && drain_seconds >= shortest * 60)
    return `drain_seconds must be less than the time limit, ${shortest} minutes`;
  return null;
}

const nameOf = (argument: string) => argument.slice(2).split('=')[0] ?? '';
