/** Training on pods of a real control plane that come, and go in every way. */
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { whyNoKubernetes } from '../../platform/testing/kubernetes/control-plane.js';
import { until } from '../../platform/testing/waiting.js';
import { IMAGE, KubernetesStack, NAMESPACE } from '../support/kubernetes-stack.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText } from '../support/stack.js';

const NODES = 4;
/** Enough for faults one after the other. */
const STEPS = 300;
/** Checkpoint of the undisturbed job whose bits shorter jobs must have: their learning rate is the same. */
const SHORT = 100;
const POLL_MS = 200;
const never = () => false;

const skip = (await whyNoKubernetes()) ?? false;

/** One agent has a node of its own. */
const pod = {
  image: IMAGE,
  resources: { cpu: '3', memory: '1Gi' },
  config_maps: ['zerofleet'],
  drain_seconds: 30,
};
const POOLS = [
  {
    pool: 'default',
    idle_seconds: 2,
    move_seconds: null,
    types: [{ name: 'node', slots: 1, max: NODES, kubernetes: pod }],
  },
  {
    pool: 'no-image',
    types: [{ name: 'node', slots: 1, max: 1, kubernetes: { ...pod, image: 'registry.test/none:1' } }],
  },
  {
    pool: 'no-node',
    types: [{ name: 'node', slots: 1, max: 1, kubernetes: { ...pod, node_selector: { zone: 'nowhere' } } }],
  },
];

t.setTimeout(1_800_000);

t.test('on a real control plane', { skip }, async (t) => {
  const stack = await KubernetesStack.start(t, { nodes: NODES, pools: POOLS });
  const { cluster, plane } = stack;
  const { client } = cluster;
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const specOf = (name: string, ranks: number, steps: number, pool = 'default'): JobSpec => {
    const spec = largerSteps(smallJob({ name, dataset, steps, ranks, every_steps: SHORT }));
    return {
      ...spec,
      train: { ...spec.train, lr_schedule: { type: 'constant', warmup_steps: 3 } },
      resources: { pool, ranks: { min: ranks, max: ranks, preferred: ranks } },
    };
  };
  const untilEmpty = async () => {
    while ((await stack.pods()).length > 0) await sleep(POLL_MS);
  };
  const digests = new Map<number, string>();

  async function expectEqual(t: Test, id: string, steps: number): Promise<void> {
    const job = await client.jobs.until(id, never);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    t.match(digests.get(steps), /^[0-9a-f]{32}$/);
    t.equal(job.export?.state_digest, digests.get(steps), 'the same bits');
    const reported = (await collect(client.jobs.metrics(id))).map(({ step }) => step);
    t.equal(new Set(reported).size, steps, 'no step is missing');
  }

  /** Waits until a waiting job is told why. */
  async function waitReason(id: string, words: RegExp): Promise<void> {
    await until(async () => {
      const events = await cluster.events(id, 'job.waiting');
      return events.some(({ data }) => words.test(`${data.reason}: ${data.message}`));
    });
  }

  await t.test('from no pod to four and back', async (t) => {
    t.same(await stack.pods(), []);
    const reference = await client.jobs.create(specOf('undisturbed', 1, STEPS));
    const wide = await client.jobs.create(specOf('wide', 3, STEPS));
    await cluster.untilRanks(wide.id, 3);
    t.equal((await stack.pods()).length, NODES);
    await client.jobs.until(reference.id, never);
    for (const { step, state_digest } of await collect(client.jobs.checkpoints(reference.id)))
      digests.set(step, state_digest);
    await expectEqual(t, wide.id, STEPS);
    await untilEmpty();
    t.same(await client.workers(), []);
    t.equal(stack.created(), NODES, 'no pod was created twice');
  });

  await t.test('an autoscaler that replaces another one in the middle of a launch', async (t) => {
    const before = stack.created();
    const { id } = await client.jobs.create(specOf('kept', 3, SHORT));
    await until(() => stack.created() > before);
    await stack.autoscaler.kill();
    stack.autoscaler.start();
    await expectEqual(t, id, SHORT);
    await untilEmpty();
    t.equal(stack.created(), before + 3);
  });

  await t.test('a deleted pod, a killed agent, a lost node, and an API server that is away', async (t) => {
    const { id } = await client.jobs.create(specOf('disturbed', 3, STEPS));
    const untilTraining = async () => {
      await cluster.untilRanks(id, 3);
      await cluster.untilMoreSteps(id, 5);
    };
    await untilTraining();
    const [first = ''] = plane.kubelets.running();
    await plane.client.delete(`/api/v1/namespaces/${NAMESPACE}/pods/${first}`);
    await until(async () => !(await stack.pods()).includes(first));
    await untilTraining();
    plane.kubelets.kill(plane.kubelets.running()[0] ?? '');
    await untilTraining();
    await plane.killServer();
    await cluster.untilMoreSteps(id, 5);
    await plane.restartServer();
    const { items = [] } = await plane.client.get(`/api/v1/namespaces/${NAMESPACE}/pods`);
    const node = items.find(({ status }) => status?.phase === 'Running')?.spec?.nodeName ?? '';
    await plane.kubelets.killNode(node);
    await plane.client.delete(`/api/v1/nodes/${node}`);
    await expectEqual(t, id, STEPS);
    await plane.kubelets.startNode(node);
    await untilEmpty();
  });

  await t.test('a quota that refuses the third pod', async (t) => {
    const quotas = `/api/v1/namespaces/${NAMESPACE}/resourcequotas`;
    await plane.client.post(quotas, { metadata: { name: 'two' }, spec: { hard: { pods: '2' } } });
    const { id } = await client.jobs.create(specOf('limited', 3, SHORT));
    await waitReason(
      id,
      /^launch_failed: .*exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2/,
    );
    await plane.client.delete(`${quotas}/two`);
    await expectEqual(t, id, SHORT);
    await untilEmpty();
  });

  await t.test('an image that does not exist, and a node that no pod fits', async (t) => {
    const image = await client.jobs.create(specOf('no image', 1, SHORT, 'no-image'));
    const node = await client.jobs.create(specOf('no node', 1, SHORT, 'no-node'));
    await waitReason(image.id, /^launch_failed: .*ErrImagePull: .*registry\.test\/none:1.*not found/);
    await waitReason(node.id, /^launch_failed: .*Unschedulable: 0\/4 nodes are available/);
    for (const { id } of [image, node]) await client.jobs.cancel(id);
    await untilEmpty();
    t.pass();
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
