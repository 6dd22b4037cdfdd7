/** Table of all environment variables, and the configuration parsed from them. */
import { resolve } from 'node:path';
import { poolPolicies } from './autoscale-pools.js';
import {
  apiKey,
  bucketList,
  currencyCode,
  integer,
  ipAddress,
  namePath,
  nonEmpty,
  oneOf,
  poolName,
  price,
  redisUrl,
  roleArn,
  url,
  urlOrNone,
} from './config-values.js';
import { gpuEnv } from './gpu-env.js';
import { OIDC_SETTINGS } from './oidc-settings.js';
import { OUTSIDE_SETTINGS } from './outside-settings.js';
import type { Setting } from './setting.js';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const CPU_ISAS = ['auto', 'avx512bf16', 'avx512', 'avx2', 'generic'] as const;

/** Default number of slots of an agent on CPUs. */
export const CPU_SLOTS = 4;

/** Link-local metadata address of EC2. */
export const AWS_METADATA_URL = 'http://169.254.169.254';

/** Source of preemption notices: the Slurm allocation of the agent. */
export const SLURM_ALLOCATION = 'slurm';

/** Source of preemption notices: SIGTERM, with the seconds until SIGKILL. */
export const GRACE_PERIOD = /^sigterm:(\d{1,5})$/;

/** All variables, in the order of the documentation. */
export const SETTINGS = [
  {
    key: 'host',
    fallback: '127.0.0.1',
    help: 'Address that the API listens on.',
    parse: nonEmpty,
  },
  {
    key: 'port',
    fallback: '8080',
    help: 'Port of the API; 0 selects a free one and prints it.',
    parse: integer(0, 65535),
  },
  {
    key: 'trusted_proxies',
    fallback: '0',
    help: 'Number of proxies in front of the API, e.g. `1` behind a load balancer ([rate limits](access.md#rate-limits)). If it is too high, clients can choose their address.',
    parse: integer(0, 10),
  },
  {
    key: 'data_dir',
    fallback: '.zerofleet',
    help: 'Directory for all data of this machine, relative to the working directory.',
    parse: (text) => resolve(nonEmpty(text)),
  },
  {
    key: 'redis_url',
    fallback: null,
    unset: 'a private Redis child is started',
    help: '`redis://` or `rediss://`, also with `+sentinel` or `+cluster`, or `unix:///path/to/socket` ([Redis](#redis)).',
    parse: redisUrl,
  },
  {
    key: 'object_store',
    fallback: null,
    unset: 'a directory under the data directory',
    help: '`file:///directory` or `s3://bucket/prefix`.',
    parse: url(['file:', 's3:']),
  },
  {
    key: 's3_endpoint',
    fallback: null,
    unset: 'the endpoint of AWS in `AWS_REGION`',
    help: 'URL of an S3-compatible server, with the credentials of `AWS_*`. A server without path-style addressing has `{bucket}` in the URL: `https://{bucket}.s3.example.com`.',
    parse: url(['http:', 'https:']),
  },
  {
    key: 'attempt_role',
    fallback: null,
    unset: "ranks have this agent's credentials",
    help: "ARN of an IAM role that this agent assumes for each attempt, so that child processes reach only the job's objects and inputs ([credentials of a job](access.md#credentials-of-a-job)).",
    parse: roleArn,
  },
  {
    key: 'api_key',
    fallback: null,
    unset: 'created, printed once and stored in the data directory',
    help: 'An admin key that the API accepts from its first start.',
    parse: apiKey,
  },
  ...OIDC_SETTINGS,
  {
    key: 'pool',
    fallback: 'default',
    help: 'Pool whose jobs this agent runs.',
    parse: poolName,
  },
  {
    key: 'address',
    fallback: null,
    unset: "this machine's address on the way to Redis; loopback when Redis is on this machine",
    help: 'IP address at which workers of other machines reach this one. Gradients between machines are not encrypted: the address must belong to a private network.',
    parse: ipAddress,
  },
  {
    key: 'device',
    fallback: 'auto',
    help: "Device of the agent's ranks: `cuda` (one GPU per rank, required at the start), `cpu`, or `auto`: GPUs if the machine has any and the native core was built with CUDA ([GPU workers](gpu.md#workers)).",
    parse: oneOf(['auto', 'cpu', 'cuda']),
  },
  {
    key: 'gpu_env',
    fallback: 'none',
    help: 'Variables of GPU libraries that change bits, as `NAME=VALUE` separated by spaces: `NVIDIA_TF32_OVERRIDE`, `CUBLAS*`, `CUDNN*`, `NCCL_ALGO`, `NCCL_PROTO`. Ranks get them only from here. They are part of the [numerics fingerprint](exactness.md#scope).',
    parse: gpuEnv,
  },
  {
    key: 'slots',
    fallback: null,
    unset: `one for each GPU; ${CPU_SLOTS} where ranks run on the CPU`,
    help: 'Maximum number of concurrent ranks of this agent; with GPUs at most their number.',
    parse: integer(1, 1024),
  },
  {
    key: 'answer_gpus',
    fallback: '0',
    help: "Number of the agent's GPUs that [answer](answers.md) in place of its CPU. They run no ranks.",
    parse: integer(0, 1023),
  },
  {
    key: 'threads_per_rank',
    fallback: null,
    unset:
      'cores of the control group divided by ranks, at least 1; on GPUs at most 4, unless `zero.offload` is `cpu`',
    help: 'Threads per rank, and of each process that [answers](answers.md), which counts as the only rank of a job; results do not depend on it. With a CPU rank per NUMA node, ranks whose threads fit into a node are bound to one, and other ranks interleave their memory.',
    parse: integer(1, 1024),
  },
  {
    key: 'metrics_port',
    fallback: null,
    unset: 'no metrics are served',
    help: 'Port of the Prometheus metrics of an agent or autoscaler (`/metrics`, on `ZEROFLEET_HOST`); 0 selects a free one and logs it.',
    parse: integer(0, 65535),
  },
  {
    key: 'price_per_rank_hour',
    fallback: '0',
    help: 'Price of one rank of this agent per hour, in the currency of `ZEROFLEET_CURRENCY`.',
    parse: price,
  },
  {
    key: 'currency',
    fallback: null,
    unset: 'costs are shown without one',
    help: 'Currency of all prices, budgets and costs, an ISO 4217 code such as `EUR`. Only the API uses it.',
    parse: currencyCode,
  },
  {
    key: 'preemption_source',
    fallback: null,
    unset: 'no server is asked; SIGTERM always works',
    help: "Source of preemption notices: `aws` (instance metadata v2), the URL of a server with the same interface, `slurm` (the agent's allocation), or `sigterm:SECONDS` (SIGTERM, that long before the end, as in a pod).",
    parse: (text) =>
      text === 'aws'
        ? AWS_METADATA_URL
        : text === SLURM_ALLOCATION || GRACE_PERIOD.test(text)
          ? text
          : url(['http:'])(text),
  },
  {
    key: 'save_seconds',
    fallback: '50',
    help: "Time for jobs to save when this agent shuts down without a deadline; then they return to the queue at their last checkpoint. The supervisor's grace period must be longer.",
    parse: integer(1, 7200),
  },
  {
    key: 'cache_bytes',
    fallback: '100000000000',
    help: 'Maximum bytes of prepared data. Above it, the least recently used is removed, but none in use. After 30 days unused data is always removed.',
    parse: integer(0, Number.MAX_SAFE_INTEGER),
  },
  ...OUTSIDE_SETTINGS,
  {
    key: 'dataset_buckets',
    fallback: 'none',
    help: "Buckets or folders, e.g. `my-data,other/texts`, from which all projects may copy datasets, models and tokenizers, with the API's S3 endpoint and credentials. Never list the object store.",
    parse: bucketList,
  },
  {
    key: 'hub_endpoint',
    fallback: 'https://huggingface.co',
    help: 'URL of the Hugging Face Hub or of a mirror, from which projects may copy models, datasets and tokenizers; `none`: from neither.',
    parse: urlOrNone,
  },
  {
    key: 'drain_seconds',
    fallback: '0',
    help: 'Time for which the API still serves at shutdown while `/healthz` returns 503, so that a load balancer deregisters it first.',
    parse: integer(0, 600),
  },
  {
    key: 'machine_id',
    fallback: null,
    unset: 'none is reported; required on machines of an autoscaler',
    help: "The provider's id of the agent's machine; `aws`: the EC2 instance id from the metadata service.",
    parse: nonEmpty,
  },
  {
    key: 'topology',
    fallback: 'none',
    help: "Domains of the network that contain the agent's machine, the largest first, e.g. `zone-a/rack-7`, by which [ranks are placed](pools.md#topology); `aws`: the availability zone from the metadata service.",
    parse: namePath,
  },
  {
    key: 'autoscale_capacity',
    fallback: 'local',
    help: "Source of an autoscaler's machines: `local` (agents on its own machine), `aws` (Auto Scaling groups in `AWS_REGION`), `slurm` ([allocations](slurm.md) of its user) or `kubernetes` ([pods](kubernetes.md) of its namespace).",
    parse: oneOf(['local', 'aws', 'slurm', 'kubernetes']),
  },
  {
    key: 'autoscale_pools',
    fallback: null,
    unset: 'with `local`, the pool of `ZEROFLEET_POOL`, up to 4 agents of `ZEROFLEET_SLOTS` slots',
    help: 'JSON: pools of the autoscaler with their machine types ([autoscaling](autoscaling.md#pools)).',
    parse: poolPolicies,
  },
  {
    key: 'autoscale_interval_seconds',
    fallback: '5',
    help: 'Interval between reconciliations of the autoscaler.',
    parse: integer(1, 20),
  },
  {
    key: 'slurm_installation',
    fallback: 'zerofleet',
    help: 'Name of this installation in the names of its Slurm jobs, different for each installation of a user on a cluster.',
    parse: poolName,
  },
  {
    key: 'cloudwatch_namespace',
    fallback: null,
    unset: 'no metrics are sent',
    help: "CloudWatch namespace in `AWS_REGION` for the autoscaler's metrics.",
    parse: nonEmpty,
  },
  {
    key: 'log_level',
    fallback: 'info',
    help: `One of ${LOG_LEVELS.join(', ')}. \`npm start\` and \`zerofleet up\` at a terminal default to \`warn\`.`,
    parse: oneOf(LOG_LEVELS),
  },
  {
    key: 'cpu_isa',
    fallback: 'auto',
    help: `Instruction-set path of the native core: ${CPU_ISAS.join(', ')}.`,
    parse: oneOf(CPU_ISAS),
  },
] as const satisfies readonly Setting[];

type Settings = (typeof SETTINGS)[number];

/** Configuration of all programs. Null means unset. */
export type Config = {
  [S in Settings as S['key']]: ReturnType<S['parse']> | Extract<S['fallback'], null>;
};
