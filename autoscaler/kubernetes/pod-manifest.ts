/** Pod of one machine: a single container that runs an agent. */
import type { MachineType, PoolPolicy } from '../../platform/config/autoscale-pools.js';
import { type KubernetesOptions, OWN_PREFIX } from '../../platform/config/kubernetes-options.js';
import { machineOf, nameOf } from './names.js';

/** Label of all pods of the autoscaler. */
export const MANAGED = { key: 'app.kubernetes.io/managed-by', value: 'zerofleet-autoscaler' };
/** Annotations that hold the identity of a pod; labels can't hold every name of a pool. */
export const ANNOTATIONS = {
  pool: `${OWN_PREFIX}pool`,
  type: `${OWN_PREFIX}type`,
  number: `${OWN_PREFIX}number`,
};

/** Folders that an agent writes to; its image is read-only. */
const FOLDERS = { data: '/var/lib/zerofleet', tmp: '/tmp' };
/** Bounds of a grace period that follows from measured saves; the first is the default. */
const MIN_DRAIN_SECONDS = 120;
const MAX_DRAIN_SECONDS = 3_600;
/** Time for the last writes of an agent, and for its end. */
const ENDING_SECONDS = 15;
/** Label with the zone of its node, which the API server gives a pod that gets a node, from version 1.35 on. */
const ZONE_LABEL = 'topology.kubernetes.io/zone';
const GPU = /^(nvidia|amd)\.com\//;

/**
 * Returns the pod of a type's machine, as it is sent to the API server.
 * @param saveSeconds longest save that agents of the pool reported; null: none did
 */
export function podOf(
  { pool }: Pick<PoolPolicy, 'pool'>,
  type: MachineType,
  number: number,
  saveSeconds: number | null,
): object {
  const options = optionsOf(type, saveSeconds);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: nameOf({ pool, type: type.name, number }),
      labels: {
        ...options.labels,
        'app.kubernetes.io/name': 'zerofleet-worker',
        [MANAGED.key]: MANAGED.value,
      },
      annotations: {
        ...options.annotations,
        [ANNOTATIONS.pool]: pool,
        [ANNOTATIONS.type]: type.name,
        [ANNOTATIONS.number]: String(number),
      },
    },
    spec: specOf(pool, type, options),
  };
}

type PodOptions = KubernetesOptions & { drain_seconds: number };

/** @throws Error for a type without `kubernetes`, which the configuration refuses */
function optionsOf({ name, kubernetes }: MachineType, saveSeconds: number | null): PodOptions {
  if (!kubernetes) throw new Error(`the type ${name} declares no pod`);
  const measured = Math.ceil(saveSeconds ?? 0) + ENDING_SECONDS;
  const bounded = Math.min(MAX_DRAIN_SECONDS, Math.max(MIN_DRAIN_SECONDS, measured));
  return { ...kubernetes, drain_seconds: kubernetes.drain_seconds ?? bounded };
}

function specOf(pool: string, type: MachineType, options: PodOptions): object {
  const { host_network: hostNetwork, shared_memory_mb: sharedMb } = options;
  return withoutUndefined({
    // An agent that ended is a machine that is gone: the controller decides whether there will be another.
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: options.drain_seconds,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    imagePullSecrets: options.image_pull_secrets.map((name) => ({ name })),
    nodeSelector: options.node_selector,
    tolerations: options.tolerations,
    affinity: options.affinity,
    priorityClassName: options.priority_class,
    runtimeClassName: options.runtime_class,
    schedulerName: options.scheduler,
    serviceAccountName: options.service_account,
    ...(hostNetwork && { hostNetwork, dnsPolicy: 'ClusterFirstWithHostNet' }),
    volumes: [
      ...Object.keys(FOLDERS).map((name) => ({ name, emptyDir: {} })),
      ...(sharedMb === undefined
        ? []
        : [{ name: 'shm', emptyDir: { medium: 'Memory', sizeLimit: `${sharedMb}Mi` } }]),
      ...options.volumes,
    ],
    containers: [containerOf(pool, type, options)],
  });
}

function containerOf(pool: string, type: MachineType, options: PodOptions): object {
  const { resources, shared_memory_mb: sharedMb } = options;
  return withoutUndefined({
    name: 'agent',
    image: options.image,
    command: options.command,
    resources: { requests: resources, limits: resources },
    envFrom: [
      ...options.config_maps.map((name) => ({ configMapRef: { name } })),
      ...options.secrets.map((name) => ({ secretRef: { name } })),
    ],
    env: environmentOf(pool, type, options),
    volumeMounts: [
      ...Object.entries(FOLDERS).map(([name, mountPath]) => ({ name, mountPath })),
      ...(sharedMb === undefined ? [] : [{ name: 'shm', mountPath: '/dev/shm' }]),
      ...options.volume_mounts,
    ],
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    // The end of the log becomes the reason of a failed launch.
    terminationMessagePolicy: 'FallbackToLogsOnError',
  });
}

function environmentOf(pool: string, { slots }: MachineType, options: PodOptions): object[] {
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const values = {
    // An agent without GPUs of its own must not look for any.
    ...(!Object.keys(options.resources).some((name) => GPU.test(name)) && { ZEROFLEET_DEVICE: 'cpu' }),
    // Zone and node. A pod without the label leaves the zone out.
    ZEROFLEET_TOPOLOGY: '$(NODE_ZONE)/$(NODE_NAME)',
    ...options.env,
    ZEROFLEET_POOL: pool,
    ZEROFLEET_SLOTS: String(slots),
    ZEROFLEET_MACHINE_ID: machineOf('$(POD_NAME)', '$(POD_UID)'),
    ZEROFLEET_PREEMPTION_SOURCE: `sigterm:${options.drain_seconds}`,
  };
  return [
    // Variables can refer to earlier ones.
    field('POD_NAME', 'metadata.name'),
    field('POD_UID', 'metadata.uid'),
    field('NODE_NAME', 'spec.nodeName'),
    field('NODE_ZONE', `metadata.labels['${ZONE_LABEL}']`),
    field('ZEROFLEET_ADDRESS', 'status.podIP'),
    ...Object.entries(values).map(([name, value]) => ({ name, value })),
  ];
}

function withoutUndefined(object: Record<string, unknown>): object {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}
