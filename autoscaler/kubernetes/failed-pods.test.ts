import t from 'tap';
import { open, podName, policy } from '../testing/kubernetes-capacity.js';
import { NOW } from '../testing/world.js';
import { KubernetesError } from './errors.js';

t.test('ends without a request have a cause', async (t) => {
  const { cluster, ended, capacity, pass, view, viewWhen } = open(t);
  await view(capacity);
  await capacity.want(policy, 'small', 6);
  const names = [0, 1, 2, 3, 4, 5].map((number) => podName(number));
  cluster.start(...names);
  await viewWhen(capacity, ({ machines }) => machines.length === 6);
  pass(100_000);
  const [deleted = '', evicted = '', drained = '', lost = '', failed = '', leaving = ''] = names;
  const target = (reason: string) => ({ conditions: [{ type: 'DisruptionTarget', status: 'True', reason }] });
  cluster.delete(deleted);
  cluster.change(evicted, { phase: 'Failed', reason: 'Evicted' });
  cluster.change(drained, target('EvictionByEvictionAPI'));
  cluster.delete(drained);
  cluster.change(lost, target('DeletionByTaintManager'));
  cluster.delete(lost);
  cluster.change(failed, {
    phase: 'Failed',
    containerStatuses: [{ state: { terminated: { exitCode: 137, startedAt: new Date(NOW).toISOString() } } }],
  });
  cluster.change(leaving, {}, { deletionTimestamp: new Date().toISOString() });
  const { machines, wanted } = await viewWhen(capacity, () => ended.length === 5);
  t.same(
    machines.map(({ terminating }) => terminating),
    [true],
  );
  t.equal(wanted.small, 0);
  const causes = ['cancelled', 'preempted', 'preempted', 'node_failed', 'failed'];
  t.same(
    ended,
    causes.map((cause) => `default/small ${cause}`),
  );
  await view(capacity);
  t.same([cluster.pods.has(failed), cluster.pods.has(evicted)], [false, false], 'their names are free');
  t.equal(ended.length, 5, 'each once');
});

t.test('why pods do not start, in the words of the cluster', async (t) => {
  const { cluster, capacity, pass, view, viewWhen, creations } = open(t);
  await view(capacity);
  const quota =
    'pods "x" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=2, limited: pods=2';
  const cases: [string, 'quota' | 'permission' | 'configuration', number][] = [
    [quota, 'quota', 403],
    ['pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods"', 'permission', 403],
    ['admission webhook "policy" denied the request: no privileged pods', 'configuration', 400],
    ['pods "x" is forbidden: no PriorityClass with name urgent was found', 'configuration', 403],
  ];
  for (const [message, code, status] of cases) {
    cluster.refuses = new KubernetesError(status, message);
    await t.rejects(capacity.want(policy, 'small', 2), { message });
    t.match(await view(capacity), { wanted: { small: 2 }, problems: [{ type: 'small', code, message }] });
    const before = creations();
    await capacity.want(policy, 'small', 2);
    t.equal(creations(), before, 'not at once again');
    pass(1_000_000);
  }
  cluster.refuses = null;
  t.match(await view(capacity), { wanted: { small: 2 } });
  t.equal(cluster.pods.size, 2, 'tried again after a time');

  const scheduled = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message: '0/3 nodes are available',
  };
  const problemIs = (text: string) => viewWhen(capacity, ({ problems }) => problems[0]?.message === text);
  cluster.start(podName(0));
  pass(100_000);
  cluster.change(podName(1), { conditions: [scheduled] });
  t.match(await problemIs('Unschedulable: 0/3 nodes are available'), { problems: [{ code: 'no_capacity' }] });
  const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "worker:1"' };
  cluster.change(podName(1), { conditions: [], containerStatuses: [{ state: { waiting } }] });
  const text = 'ImagePullBackOff: Back-off pulling image "worker:1"';
  t.match(await problemIs(text), { problems: [{ code: 'configuration' }] });
  t.match((await view(capacity)).pods, [
    { name: podName(1), phase: 'pending', node: null, ...waiting, log: null },
    { name: podName(0), phase: 'running', reason: null, message: null },
  ]);
  cluster.start(podName(1));
  await viewWhen(capacity, ({ problems }) => problems.length === 0);
});
