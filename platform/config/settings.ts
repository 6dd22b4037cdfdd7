/** Table of all environment variables, and the configuration parsed from them. */
import { resolve } from 'node:path';
import type { AllowedBucket } from '../dataset-sources.js';
import { type PoolPolicy, poolPolicies } from './autoscale-pools.js';
import {
  apiKey,
  bucketList,
  cidrList,
  integer,
  ipAddress,
  nonEmpty,
  oneOf,
  poolName,
  price,
  roleArn,
  url,
} from './config-values.js';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const CPU_ISAS = ['auto', 'avx512bf16', 'avx512', 'avx2', 'generic'] as const;
export type CpuIsa = (typeof CPU_ISAS)[number];

export const DEVICES = ['auto', 'cpu', 'cuda'] as const;
export type DeviceName = (typeof DEVICES)[number];

/** Default number of slots of an agent on CPUs. */
export const CPU_SLOTS = 4;

/** Link-local metadata address of EC2. */
export const AWS_METADATA_URL = 'http://169.254.169.254';

export const CAPACITIES = ['local', 'aws'] as const;
export type CapacityName = (typeof CAPACITIES)[number];

/** Configuration of all programs. Null means unset; the table describes the effect. */
export interface Config {
  host: string;
  port: number;
  /** Absolute path. */
  data_dir: string;
  redis_url: string | null;
  object_store: string | null;
  s3_endpoint: string | null;
  /**
   * ARN of the IAM role whose sessions child processes get; null if they use the credentials of this agent.
   */
  attempt_role: string | null;
  api_key: string | null;
  pool: string;
  /** Address at which workers of other machines reach this one. */
  address: string | null;
  /** Device of this agent's ranks. */
  device: DeviceName;
  /** Maximum of concurrent ranks of this agent; null: one per GPU, else CPU_SLOTS. */
  slots: number | null;
  threads_per_rank: number | null;
  /** Metrics port of an agent or autoscaler; null serves none. */
  metrics_port: number | null;
  /** Price of a rank for one hour, in the currency of budgets. */
  price_per_rank_hour: number;
  /** URL of the metadata service that announces preemptions; null for none. */
  preemption_source: string | null;
  /** Time for jobs to save when an agent shuts down. */
  save_seconds: number;
  /** CIDR ranges that webhooks may reach although they are not public. */
  webhook_allow: readonly string[];
  /** Buckets and folders from which datasets, models and tokenizers may be copied. */
  dataset_buckets: readonly AllowedBucket[];
  /** Seconds between the end of the API's readiness and of its service. */
  drain_seconds: number;
  /** Maximum of cached prepared data in this data directory. */
  cache_bytes: number;
  /** Id of the agent's machine; `aws` reads it from the metadata service. */
  machine_id: string | null;
  /** Source of machines. */
  autoscale_capacity: CapacityName;
  /** Pools of the autoscaler and their machines; null: the pool of `pool`. */
  autoscale_pools: readonly PoolPolicy[] | null;
  autoscale_interval_seconds: number;
  /** CloudWatch namespace of the autoscaler's metrics; null for none. */
  cloudwatch_namespace: string | null;
  log_level: LogLevel;
  cpu_isa: CpuIsa;
}

interface Setting<K extends keyof Config> {
  key: K;
  variable: string;
  /** Default as text, also for the documentation. Null: may stay unset. */
  fallback: string | null;
  /** Effect of an unset variable, where `fallback` does not state it. */
  unset?: string;
  help: string;
  secret?: boolean;
  parse(text: string): Config[K];
}

function setting<K extends keyof Config>(entry: Setting<K>): Setting<K> {
  return entry;
}

/** All variables, in the order of the documentation. */
export const SETTINGS = [
  setting({
    key: 'host',
    variable: 'ZEROFLEET_HOST',
    fallback: '127.0.0.1',
    help: 'Address that the API listens on.',
    parse: nonEmpty,
  }),
  setting({
    key: 'port',
    variable: 'ZEROFLEET_PORT',
    fallback: '8080',
    help: 'Port of the API; 0 selects a free port and prints it.',
    parse: integer(0, 65535),
  }),
  setting({
    key: 'data_dir',
    variable: 'ZEROFLEET_DATA_DIR',
    fallback: '.zerofleet',
    help: 'Directory for all data of this machine; relative to the working directory.',
    parse: (text) => resolve(nonEmpty(text)),
  }),
  setting({
    key: 'redis_url',
    variable: 'ZEROFLEET_REDIS_URL',
    fallback: null,
    unset: 'a private Redis child is started',
    help: '`redis://`, `rediss://` or `unix:///path/to/socket`.',
    secret: true,
    parse: url(['redis:', 'rediss:', 'unix:']),
  }),
  setting({
    key: 'object_store',
    variable: 'ZEROFLEET_OBJECT_STORE',
    fallback: null,
    unset: 'a directory under the data directory',
    help: '`file:///directory` or `s3://bucket/prefix`.',
    parse: url(['file:', 's3:']),
  }),
  setting({
    key: 's3_endpoint',
    variable: 'ZEROFLEET_S3_ENDPOINT',
    fallback: null,
    unset: 'the endpoint of AWS in `AWS_REGION`',
    help: 'URL of an S3-compatible server. Credentials come from the usual `AWS_*` variables.',
    parse: url(['http:', 'https:']),
  }),
  setting({
    key: 'attempt_role',
    variable: 'ZEROFLEET_ATTEMPT_ROLE',
    fallback: null,
    unset: 'they have the credentials of this agent',
    help: "ARN of an IAM role. This agent assumes it once for each job that it runs. Ranks and other child processes use that session instead of the agent's credentials: it grants access to the job's own objects and its inputs ([credentials of a job](access.md#credentials-of-a-job)).",
    parse: roleArn,
  }),
  setting({
    key: 'api_key',
    variable: 'ZEROFLEET_API_KEY',
    fallback: null,
    unset: 'one is made, printed once and stored under the data directory',
    help: 'An admin key that the API accepts from its first start.',
    secret: true,
    parse: apiKey,
  }),
  setting({
    key: 'pool',
    variable: 'ZEROFLEET_POOL',
    fallback: 'default',
    help: 'Pool whose jobs this agent runs.',
    parse: poolName,
  }),
  setting({
    key: 'address',
    variable: 'ZEROFLEET_ADDRESS',
    fallback: null,
    unset: "this machine's address on the way to Redis; loopback when Redis is on this machine",
    help: 'IP address at which workers of other machines reach this one. Gradients of jobs that run on several machines are not encrypted: the address must belong to a private network.',
    parse: ipAddress,
  }),
  setting({
    key: 'device',
    variable: 'ZEROFLEET_DEVICE',
    fallback: 'auto',
    help: "Device of the agent's ranks: `cuda` (one GPU per rank; without a GPU the agent does not start), `cpu`, or `auto`: GPUs if the machine has any and the native core was built with CUDA ([GPU workers](gpu.md#workers)).",
    parse: oneOf(DEVICES),
  }),
  setting({
    key: 'slots',
    variable: 'ZEROFLEET_SLOTS',
    fallback: null,
    unset: `one for each GPU; ${CPU_SLOTS} where ranks run on the CPU`,
    help: 'Maximum number of concurrent ranks of this agent; with GPUs at most their number.',
    parse: integer(1, 1024),
  }),
  setting({
    key: 'threads_per_rank',
    variable: 'ZEROFLEET_THREADS_PER_RANK',
    fallback: null,
    unset:
      'cores, as far as the control group leaves them, divided by ranks, at least 1; on GPUs at most 4, unless `zero.offload` is `cpu`',
    help: 'Threads per rank. Results do not depend on it. On a machine with several NUMA nodes and at least one CPU rank per node, a rank is bound to the processors of one node if the node has at least as many as the rank has threads; the memory of a rank that uses several nodes is interleaved over them.',
    parse: integer(1, 1024),
  }),
  setting({
    key: 'metrics_port',
    variable: 'ZEROFLEET_METRICS_PORT',
    fallback: null,
    unset: 'none are served',
    help: 'Port on which an agent or an autoscaler serves its Prometheus metrics (`/metrics`, on `ZEROFLEET_HOST`); 0 selects a free port and logs it.',
    parse: integer(0, 65535),
  }),
  setting({
    key: 'price_per_rank_hour',
    variable: 'ZEROFLEET_PRICE_PER_RANK_HOUR',
    fallback: '0',
    help: 'Price of one rank of this agent per hour; `limits.max_cost` of jobs is in the same currency.',
    parse: price,
  }),
  setting({
    key: 'preemption_source',
    variable: 'ZEROFLEET_PREEMPTION_SOURCE',
    fallback: null,
    unset: 'no server is asked; SIGTERM always works',
    help: 'Source of preemption notices for the machine of this agent: `aws` (instance metadata v2), or the URL of another server with the same interface.',
    parse: (text) => (text === 'aws' ? AWS_METADATA_URL : url(['http:'])(text)),
  }),
  setting({
    key: 'save_seconds',
    variable: 'ZEROFLEET_SAVE_SECONDS',
    fallback: '50',
    help: 'Time for jobs to save when this agent shuts down without a deadline. After it the agent returns them to the queue at their last checkpoint. The grace period of its supervisor must be longer.',
    parse: integer(1, 7200),
  }),
  setting({
    key: 'cache_bytes',
    variable: 'ZEROFLEET_CACHE_BYTES',
    fallback: '100000000000',
    help: 'Maximum bytes of prepared data in the data directory of the agents. Above it, unused data is removed, least recently used first; unused data is removed after 30 days in any case. Data in use stays, even above the limit.',
    parse: integer(0, Number.MAX_SAFE_INTEGER),
  }),
  setting({
    key: 'webhook_allow',
    variable: 'ZEROFLEET_WEBHOOK_ALLOW',
    fallback: 'none',
    help: 'Address ranges, e.g. `10.1.0.0/16,fd00::/8`, to which webhooks may send although they are not public, also without TLS; `none`: only public addresses over TLS.',
    parse: cidrList,
  }),
  setting({
    key: 'dataset_buckets',
    variable: 'ZEROFLEET_DATASET_BUCKETS',
    fallback: 'none',
    help: 'Buckets, or folders of them, e.g. `my-data,other/texts`, from which all projects may copy datasets, models and tokenizers by `s3://` URI. The API reads them from the server of `ZEROFLEET_S3_ENDPOINT` with its `AWS_*` credentials. The list must not contain the object store.',
    parse: bucketList,
  }),
  setting({
    key: 'drain_seconds',
    variable: 'ZEROFLEET_DRAIN_SECONDS',
    fallback: '0',
    help: 'Time for which the API still serves during shutdown while `/readyz` returns 503, so that a load balancer can deregister it first.',
    parse: integer(0, 600),
  }),
  setting({
    key: 'machine_id',
    variable: 'ZEROFLEET_MACHINE_ID',
    fallback: null,
    unset: 'none is reported; a machine of an autoscaler must report it',
    help: "Id of the machine on which this agent runs, as named by the machine's provider; `aws`: the id of the EC2 instance, from its metadata service.",
    parse: nonEmpty,
  }),
  setting({
    key: 'autoscale_capacity',
    variable: 'ZEROFLEET_AUTOSCALE_CAPACITY',
    fallback: 'local',
    help: "Source of an autoscaler's machines: `local` (agents on its own machine) or `aws` (Auto Scaling groups in `AWS_REGION`).",
    parse: oneOf(CAPACITIES),
  }),
  setting({
    key: 'autoscale_pools',
    variable: 'ZEROFLEET_AUTOSCALE_POOLS',
    fallback: null,
    unset: 'with `local`, the pool of `ZEROFLEET_POOL`, up to 4 agents of `ZEROFLEET_SLOTS` slots',
    help: 'JSON: pools of the autoscaler and the machine types of each ([autoscaling](autoscaling.md#pools)).',
    parse: poolPolicies,
  }),
  setting({
    key: 'autoscale_interval_seconds',
    variable: 'ZEROFLEET_AUTOSCALE_INTERVAL_SECONDS',
    fallback: '5',
    help: 'Interval between two reconciliations of an autoscaler.',
    parse: integer(1, 20),
  }),
  setting({
    key: 'cloudwatch_namespace',
    variable: 'ZEROFLEET_CLOUDWATCH_NAMESPACE',
    fallback: null,
    unset: 'none are sent',
    help: 'CloudWatch namespace, in `AWS_REGION`, for the metrics of an autoscaler.',
    parse: nonEmpty,
  }),
  setting({
    key: 'log_level',
    variable: 'ZEROFLEET_LOG_LEVEL',
    fallback: 'info',
    help: `One of ${LOG_LEVELS.join(', ')}. \`npm start\` and \`zerofleet up\` at a terminal use \`warn\` if it is unset.`,
    parse: oneOf(LOG_LEVELS),
  }),
  setting({
    key: 'cpu_isa',
    variable: 'ZEROFLEET_CPU_ISA',
    fallback: 'auto',
    help: `Instruction-set path of the native core: ${CPU_ISAS.join(', ')}.`,
    parse: oneOf(CPU_ISAS),
  }),
] as const;
