import t from 'tap';
import { poolPolicies } from '../../platform/config/autoscale-pools.js';
import { nameOf } from './names.js';
import { podOf } from './pod-manifest.js';

function make(options: object, saveSeconds: number | null = null) {
  const names = { pool: 'gpu', type: 'a100' };
  const kubernetes = { image: 'worker:1', resources: { cpu: '2' }, ...options };
  const types = [{ name: names.type, slots: 4, max: 2, kubernetes }];
  const [policy] = poolPolicies(JSON.stringify([{ pool: names.pool, types }]));
  if (!policy?.types[0]) throw new Error('no type');
  return podOf(policy, policy.types[0], 7, saveSeconds);
}

t.test('a pod fulfils the restricted security standard, and its agent knows its machine', async (t) => {
  t.match(make({}), {
    metadata: {
      name: /^gpu-a100-[0-9a-f]{8}-7$/,
      labels: { 'app.kubernetes.io/managed-by': 'zerofleet-autoscaler' },
      annotations: { 'zerofleet/pool': 'gpu', 'zerofleet/type': 'a100', 'zerofleet/number': '7' },
    },
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 120,
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          image: 'worker:1',
          resources: { requests: { cpu: '2' }, limits: { cpu: '2' } },
          env: [
            { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
            { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
            {
              name: 'NODE_ZONE',
              valueFrom: { fieldRef: { fieldPath: "metadata.labels['topology.kubernetes.io/zone']" } },
            },
            { name: 'ZEROFLEET_ADDRESS', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
            { name: 'ZEROFLEET_DEVICE', value: 'cpu' },
            { name: 'ZEROFLEET_TOPOLOGY', value: '$(NODE_ZONE)/$(NODE_NAME)' },
            { name: 'ZEROFLEET_POOL', value: 'gpu' },
            { name: 'ZEROFLEET_SLOTS', value: '4' },
            { name: 'ZEROFLEET_MACHINE_ID', value: '$(POD_NAME).$(POD_UID)' },
            { name: 'ZEROFLEET_PREEMPTION_SOURCE', value: 'sigterm:120' },
          ],
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    },
  });
});

t.test('the options of a type become those of its pods', async (t) => {
  const tolerations = [{ key: 'nvidia.com/gpu', operator: 'Exists' }];
  const pod = make({
    resources: { 'nvidia.com/gpu': '8' },
    tolerations,
    node_selector: { zone: 'a' },
    priority_class: 'training',
    service_account: 'worker',
    host_network: true,
    shared_memory_mb: 4096,
    labels: { 'kueue.x-k8s.io/queue-name': 'gpus' },
    secrets: ['zerofleet'],
    env: { NCCL_DEBUG: 'INFO' },
    volumes: [{ name: 'ib', hostPath: { path: '/dev/infiniband' } }],
    volume_mounts: [{ name: 'ib', mountPath: '/dev/infiniband' }],
    command: ['agent'],
    drain_seconds: 60,
  });
  t.match(pod, {
    metadata: { labels: { 'kueue.x-k8s.io/queue-name': 'gpus' } },
    spec: {
      terminationGracePeriodSeconds: 60,
      tolerations,
      nodeSelector: { zone: 'a' },
      priorityClassName: 'training',
      serviceAccountName: 'worker',
      hostNetwork: true,
      dnsPolicy: 'ClusterFirstWithHostNet',
      volumes: [
        { name: 'data' },
        { name: 'tmp' },
        { name: 'shm', emptyDir: { medium: 'Memory', sizeLimit: '4096Mi' } },
        { name: 'ib' },
      ],
      containers: [
        {
          command: ['agent'],
          envFrom: [{ secretRef: { name: 'zerofleet' } }],
          volumeMounts: [{}, {}, { mountPath: '/dev/shm' }, { mountPath: '/dev/infiniband' }],
        },
      ],
    },
  });
  const text = JSON.stringify(pod);
  t.notMatch(text, 'ZEROFLEET_DEVICE', 'an agent with GPUs uses them');
  t.match(text, '"name":"NCCL_DEBUG","value":"INFO"');
});

t.test(
  'the grace period is that of the longest measured save, within bounds, unless it is configured',
  async (t) => {
    const graceOf = (saveSeconds: number | null, options: object = {}) => {
      const text = JSON.stringify(make(options, saveSeconds));
      const [, pod] = /"terminationGracePeriodSeconds":(\d+)/.exec(text) ?? [];
      t.match(text, `"value":"sigterm:${pod}"`, 'its agent knows it');
      return Number(pod);
    };
    t.equal(graceOf(null), 120);
    t.equal(graceOf(3.2), 120);
    t.equal(graceOf(400.5), 416, 'and the time of its last writes');
    t.equal(graceOf(50_000), 3_600);
    t.equal(graceOf(400, { drain_seconds: 30 }), 30);
  },
);

t.test('names are those of hosts, and differ for identities that differ', async (t) => {
  const long = 'x'.repeat(63);
  const names = [
    { pool: 'A', type: 'b' },
    { pool: 'a', type: 'b' },
    { pool: 'a-b', type: 'c' },
    { pool: 'a', type: 'b-c' },
    { pool: long, type: long },
    { pool: long, type: `${long.slice(1)}y` },
    { pool: '_', type: '.' },
  ].map((identity) => nameOf({ ...identity, number: 999_999 }));
  t.equal(new Set(names).size, names.length);
  for (const name of names) t.match(name, /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])$/);
});
