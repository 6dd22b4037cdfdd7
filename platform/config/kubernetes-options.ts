/** Pod of a machine type. Nested objects are the cluster's own, in its words: the API server checks them. */
import { type Static, Type } from '../schema.js';

const Name = Type.String({ pattern: '^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$' });
const Text = Type.String({ maxLength: 4096 });
const Texts = Type.Record(Type.String(), Text);
const ClusterObject = Type.Record(Type.String(), Type.Unsafe<unknown>());
const listOf = (items: typeof Name) => Type.Array(items, { maxItems: 20, default: [] });
const objects = Type.Array(ClusterObject, { maxItems: 50, default: [] });

export const KubernetesOptions = Type.Object(
  {
    image: Type.String({ pattern: '^\\S{1,500}$' }),
    image_pull_secrets: listOf(Name),
    /**
     * Resources of the container, requested and limited, as `{"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}`.
     */
    resources: Type.Record(Type.String(), Type.String({ pattern: '^[0-9][0-9.]*[a-zA-Z]{0,2}$' })),
    node_selector: Type.Optional(Texts),
    tolerations: objects,
    affinity: Type.Optional(ClusterObject),
    priority_class: Type.Optional(Name),
    runtime_class: Type.Optional(Name),
    scheduler: Type.Optional(Name),
    /** Identity of the agents, by which the cluster gives them credentials of the object store. */
    service_account: Type.Optional(Name),
    host_network: Type.Boolean({ default: false }),
    /** Size of /dev/shm; by default the container runtime's. */
    shared_memory_mb: Type.Optional(Type.Integer({ minimum: 1 })),
    labels: Type.Optional(Texts),
    annotations: Type.Optional(Texts),
    /** ConfigMaps and Secrets whose entries are the agents' environment. */
    config_maps: listOf(Name),
    secrets: listOf(Name),
    env: Type.Optional(Texts),
    volumes: objects,
    volume_mounts: objects,
    /** Program of the agent and its arguments; by default the image's. */
    command: Type.Optional(Type.Array(Text, { minItems: 1, maxItems: 50 })),
    /** Time from SIGTERM to SIGKILL, in which the agent saves and returns its jobs; by default from measured saves. */
    drain_seconds: Type.Optional(Type.Integer({ minimum: 10, maximum: 86_400 })),
  },
  { additionalProperties: false },
);

export type KubernetesOptions = Static<typeof KubernetesOptions>;

/** Variables that the autoscaler sets. */
const RESERVED = [
  ...['NODE_NAME', 'NODE_ZONE', 'POD_NAME', 'POD_UID'],
  ...['ADDRESS', 'MACHINE_ID', 'POOL', 'PREEMPTION_SOURCE', 'SLOTS'].map((name) => `ZEROFLEET_${name}`),
];
/** Prefix of the labels and annotations by which the autoscaler finds its pods. */
export const OWN_PREFIX = 'zerofleet/';

/** Returns what is wrong with options that fit the schema; null for nothing. */
export function kubernetesProblem({
  env = {},
  labels = {},
  annotations = {},
}: KubernetesOptions): string | null {
  const variable = RESERVED.find((name) => name in env);
  if (variable !== undefined) return `the autoscaler itself sets ${variable}`;
  const key = Object.keys({ ...labels, ...annotations }).find((name) => name.startsWith(OWN_PREFIX));
  if (key !== undefined)
    return `${key}: the autoscaler itself sets the labels and annotations of ${OWN_PREFIX}`;
  return null;
}
