/** Training on pods of a real control plane that come, and go in every way; `npm run test:kubernetes` runs longer. */
import t from 'tap';
import { findCluster } from '../../autoscaler/kubernetes/access.js';
import { Connection } from '../../autoscaler/kubernetes/connection.js';
import { PodsApi } from '../../autoscaler/kubernetes/pods-api.js';
import { whyNoKubernetes, zoneOf } from '../../platform/testing/kubernetes/control-plane.js';
import { until } from '../../platform/testing/waiting.js';
import { KubernetesStack, NAMESPACE, POD } from '../support/kubernetes-stack.js';
import { PodJobs } from './pod-jobs.js';

const NODES = 4;

const skip = (await whyNoKubernetes()) ?? false;

const typeOf = (max: number, changes: object = {}) => ({
  name: 'node',
  slots: 1,
  max,
  kubernetes: { ...POD, ...changes },
});
const POOLS = [
  { pool: 'default', idle_seconds: 2, move_seconds: null, types: [typeOf(NODES)] },
  { pool: 'no-image', types: [typeOf(1, { image: 'registry.test/none:1' })] },
  { pool: 'no-node', types: [typeOf(1, { node_selector: { zone: 'nowhere' } })] },
];

t.setTimeout(1_200_000);

t.test('on a real control plane', { skip }, async (t) => {
  const stack = await KubernetesStack.start(t, { nodes: NODES, pools: POOLS });
  const jobs = await PodJobs.start(stack);
  const { cluster, plane } = stack;
  const { client } = cluster;

  await t.test('an image that does not exist, and a node that no pod fits', async (t) => {
    t.same(await stack.pods(), []);
    const image = await jobs.create('no image', { min: 1 }, 'no-image');
    const node = await jobs.create('no node', { min: 1 }, 'no-node');
    await jobs.untilReason(image, /^launch_failed: .*ErrImagePull: .*registry\.test\/none:1.*not found/);
    await jobs.untilReason(node, /^launch_failed: .*Unschedulable: 0\/4 nodes are available/);
    const pods = (await client.pools()).flatMap(({ machines }) => machines?.pods ?? []);
    t.match(pods, [
      { name: /^no-image-/, node: /^n\d$/, phase: 'pending', reason: 'ErrImagePull', message: /not found/ },
      { name: /^no-node-/, node: null, phase: 'pending', reason: 'Unschedulable', message: /^0\/4 nodes/ },
    ]);
    for (const id of [image, node]) await client.jobs.cancel(id);
    await jobs.untilPods(0);
  });

  await t.test('from no pod to one, to three and back, with the job that is resized', async (t) => {
    const before = stack.created();
    await jobs.cycle('resized');
    t.same(await client.workers(), []);
    t.equal(stack.created(), before + 3, 'the pods without ranks went, and no pod was created twice');
  });

  await t.test(
    'a quota, a new leader, a deleted pod, a killed agent, a lost node, no API server',
    async (t) => {
      const before = stack.created();
      const quotas = `/api/v1/namespaces/${NAMESPACE}/resourcequotas`;
      await plane.client.post(quotas, { metadata: { name: 'two' }, spec: { hard: { pods: '2' } } });
      const id = await jobs.create('disturbed', { min: 3 });
      await until(() => stack.created() > before);
      // In the middle of the launch: the third pod is missing.
      await stack.autoscaler.kill();
      stack.autoscaler.start();
      const quota = 'exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2';
      await jobs.untilReason(id, new RegExp(`^launch_failed: .*${quota}`));
      await plane.client.delete(`${quotas}/two`);
      await jobs.untilTraining(id, 3);
      t.equal(stack.created(), before + 3, 'no pod was created twice');
      const topologies = await jobs.topologies(id);
      const nodes = (await stack.running()).map(({ node }) => [zoneOf(node), node]);
      t.same([...topologies].sort(), nodes.sort(), 'agents report the zone and the node of their pods');
      const zones = topologies.map(([zone]) => zone);
      t.equal(zones[0], zones[1], 'the zone with two of the pods has the first ranks');

      const [first = ''] = plane.kubelets.running();
      await plane.client.delete(`/api/v1/namespaces/${NAMESPACE}/pods/${first}`);
      await until(async () => !plane.kubelets.running().includes(first));
      await jobs.untilTraining(id, 3);
      plane.kubelets.kill(plane.kubelets.running()[0] ?? '');
      await jobs.untilTraining(id, 3);
      await plane.killServer();
      await cluster.untilMoreSteps(id, 3);
      await plane.restartServer();
      const [{ node } = { node: '' }] = await stack.running();
      await plane.kubelets.killNode(node);
      await plane.client.delete(`/api/v1/nodes/${node}`);
      await jobs.untilTraining(id, 3);
      await jobs.finish('disturbed', id);
      await jobs.untilPods(0);
      t.same(plane.kubelets.overdue, [], 'agents end within the grace period');
    },
  );

  await t.test('the bits are those of one rank', async (t) => {
    for (const { name, step, state_digest, expected, missing_steps } of await jobs.compare()) {
      t.match(expected, /^[0-9a-f]{32}$/);
      t.equal(state_digest, expected, `${name}, step ${step}`);
      t.same(missing_steps, [], 'each step was reported');
    }
    // A server that is killed writes no entry for the request that it performs.
    const unrecorded = stack.created() - (await stack.granted());
    t.ok(unrecorded === 0 || unrecorded === 1, `${unrecorded} pods that the audit log lacks`);
  });

  await t.test('a watch of a version that the server has forgotten', async (t) => {
    const cluster = await findCluster({ KUBECONFIG: stack.kubeconfig });
    const api = new PodsApi(new Connection(cluster, () => undefined));
    await t.rejects(api.watch('1', new AbortController().signal).next(), { status: 410, message: /too old/ });
    api.close();
  });

  await t.test('every right of the role was used, and nothing beyond it was asked for', async (t) => {
    const requests = await stack.requests();
    const asked = requests.map(
      ({ verb, objectRef }) => `${verb} ${objectRef?.resource} ${objectRef?.namespace}`,
    );
    const verbs = ['create', 'delete', 'list', 'watch'];
    t.same(
      [...new Set(asked)].sort(),
      verbs.map((verb) => `${verb} pods ${NAMESPACE}`),
    );
    const counts = Object.fromEntries(
      verbs.map((verb) => [verb, requests.filter((each) => each.verb === verb).length]),
    );
    t.comment(`requests of the autoscaler: ${JSON.stringify(counts)}`);
  });
});
