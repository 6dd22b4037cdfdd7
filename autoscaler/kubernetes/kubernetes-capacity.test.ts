import t, { type Test } from 'tap';
import { type PoolPolicy, poolPolicies } from '../../platform/config/autoscale-pools.js';
import { createLogger } from '../../platform/logging/logging.js';
import { until } from '../../platform/testing/waiting.js';
import { KubernetesStandIn } from '../testing/kubernetes-stand-in.js';
import { NOW } from '../testing/world.js';
import { KubernetesError } from './errors.js';
import { KubernetesCapacity } from './kubernetes-capacity.js';
import { nameOf } from './names.js';

const log = createLogger({ level: 'silent', name: 'test' });
const kubernetes = { image: 'worker:1', resources: { cpu: '1' } };
const policy = poolOf('default');
const other = poolOf('other');

function poolOf(pool: string): PoolPolicy {
  const types = [
    { name: 'small', slots: 1, max: 100, kubernetes },
    { name: 'large', slots: 8, max: 2, kubernetes },
  ];
  const [policy] = poolPolicies(JSON.stringify([{ pool, types }]));
  if (!policy) throw new Error('no pool');
  return policy;
}

const podName = (number: number, type = 'small', pool = 'default') => nameOf({ pool, type, number });

function open(t: Test) {
  let now = NOW;
  const cluster = new KubernetesStandIn(() => now);
  const ended: string[] = [];
  const create = () => {
    const onEnded = (pool: string, type: string, cause: string) => ended.push(`${pool}/${type} ${cause}`);
    const capacity = new KubernetesCapacity({ api: cluster, log, onEnded, clock: () => now });
    t.teardown(() => capacity.close());
    return capacity;
  };
  const view = async (capacity: KubernetesCapacity, pool = policy) => {
    await capacity.refresh();
    return capacity.view(pool);
  };
  /** The first view for which a condition holds: changes arrive by a watch. */
  const viewWhen = async (
    capacity: KubernetesCapacity,
    is: (seen: Awaited<ReturnType<typeof view>>) => boolean,
  ) => {
    await until(async () => is(await view(capacity)));
    return view(capacity);
  };
  const creations = () => cluster.calls.filter((call) => call.startsWith('create')).length;
  const pass = (ms: number) => {
    now += ms;
  };
  return { cluster, ended, create, pass, view, viewWhen, creations, capacity: create() };
}

t.test('the cluster is the record of what was requested', async (t) => {
  const { cluster, capacity, create, view, viewWhen, creations } = open(t);
  t.same(await view(capacity), { machines: [], wanted: { small: 0, large: 0 }, problems: [], pods: [] });
  await capacity.want(policy, 'small', 3);
  await capacity.want(policy, 'small', 3);
  await capacity.want(policy, 'large', 1);
  await capacity.want(other, 'large', 1);
  t.same(
    [...cluster.pods.keys()],
    [podName(0), podName(1), podName(2), podName(0, 'large'), podName(0, 'large', 'other')],
  );
  t.match(await capacity.view(policy), { machines: [], wanted: { small: 3, large: 1 }, problems: [] });
  cluster.start(podName(0));
  const { machines } = await viewWhen(capacity, (seen) => seen.machines.length === 1);
  t.match(machines, [{ id: `${podName(0)}.uid-3`, type: 'small', terminating: false }]);

  const successor = create();
  t.match(await view(successor), { machines, wanted: { small: 3, large: 1 } });
  await successor.want(policy, 'small', 3);
  t.equal(creations(), 5, 'another autoscaler creates nothing twice');
});

t.test('two autoscalers that request the same machines create each pod once', async (t) => {
  const { cluster, capacity, create, view } = open(t);
  const second = create();
  await view(capacity);
  await view(second);
  await Promise.all([capacity.want(policy, 'small', 4), second.want(policy, 'small', 4)]);
  t.equal(cluster.pods.size, 4);
  t.match(await view(capacity), { wanted: { small: 4 } });
  t.match(await view(second), { wanted: { small: 4 } });
});

t.test('pools that find pods of another autoscaler at once list them once', async (t) => {
  const { cluster, ended, capacity, create, view } = open(t);
  const second = create();
  await view(capacity);
  await view(second);
  const pools = [policy, other];
  await Promise.all(pools.map((pool) => capacity.want(pool, 'small', 1)));
  const before = cluster.calls.length;
  await Promise.all(pools.map((pool) => second.want(pool, 'small', 1)));
  const calls = cluster.calls.slice(before);
  t.same(
    ['list', 'watch'].map((name) => calls.filter((call) => call === name).length),
    [1, 1],
  );
  t.same([cluster.pods.size, ended], [2, []]);
});

t.test('a pod that is created while pods are listed stays known', async (t) => {
  const { cluster, ended, capacity, view } = open(t);
  await view(capacity);
  const list = cluster.list.bind(cluster);
  let created = false;
  cluster.list = async () => {
    const answer = await list();
    await capacity.want(policy, 'small', 1);
    created = true;
    return answer;
  };
  cluster.endWatches(new KubernetesError(410, 'too old resource version'));
  await until(async () => {
    await capacity.refresh();
    return created;
  });
  t.match(await capacity.view(policy), { wanted: { small: 1 } });
  t.same(ended, []);
});

t.test('a creation whose answer is lost is not repeated under another name', async (t) => {
  const { cluster, capacity, view } = open(t);
  await view(capacity);
  cluster.losesAnswers = true;
  await t.rejects(capacity.want(policy, 'small', 2), /no answer/);
  cluster.losesAnswers = false;
  await capacity.want(policy, 'small', 2);
  t.same([...cluster.pods.keys()], [podName(0), podName(1)]);
  t.match(await view(capacity), { wanted: { small: 2 }, problems: [] });
});

t.test('requests are withdrawn, the newest first, and machines end by their id', async (t) => {
  const { cluster, ended, capacity, viewWhen, view } = open(t);
  await view(capacity);
  await capacity.want(policy, 'small', 4);
  cluster.start(podName(0), podName(1));
  await viewWhen(capacity, ({ machines }) => machines.length === 2);
  // A pod that starts after it was seen to wait.
  cluster.start(podName(3));
  await capacity.want(policy, 'small', 1);
  t.equal(cluster.pods.has(podName(2)), false);
  t.match(
    await viewWhen(capacity, ({ machines }) => machines.length === 3),
    { wanted: { small: 3 } },
    'machines stay',
  );
  const [, second] = (await view(capacity)).machines;
  await capacity.retire(policy, second?.id ?? '');
  await capacity.retire(policy, second?.id ?? '');
  await capacity.retire(policy, 'nothing');
  t.equal(cluster.calls.filter((call) => call === `delete ${podName(1)}`).length, 1);
  t.match(await view(capacity), { wanted: { small: 2 } });
  t.equal((await view(capacity)).machines.find(({ id }) => id === second?.id)?.terminating, true);
  // The name of a pod that is leaving is not used again.
  await capacity.want(policy, 'small', 3);
  t.ok(cluster.pods.has(podName(2)));
  cluster.delete(podName(1));
  await viewWhen(capacity, ({ machines }) => machines.length === 2);
  t.same(ended, [], 'what the autoscaler ends is no fault');
});

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

t.test(
  'an agent that fails at its start is quoted, kept for a while, and not started at once again',
  async (t) => {
    const { cluster, ended, capacity, create, pass, view, viewWhen, creations } = open(t);
    await view(capacity);
    await capacity.want(policy, 'small', 2);
    cluster.start(podName(0), podName(1));
    await viewWhen(capacity, ({ machines }) => machines.length === 2);
    for (const name of [podName(0), podName(1)]) cluster.end(name, 1, 'log\nRedis is not available\n');
    const { problems, wanted } = await viewWhen(capacity, () => ended.length === 2);
    t.match(problems, [
      { code: 'configuration', message: /ended at its start \(Error, exit code 1\): Redis is not available/ },
    ]);
    t.match((await view(capacity)).pods, [
      {
        ...{ name: podName(0), type: 'small', phase: 'ended', reason: 'Error' },
        ...{ message: 'exit code 1', log: 'log\nRedis is not available' },
      },
      { name: podName(1) },
    ]);
    t.equal(wanted.small, 2, 'they are still owed');
    t.equal(creations(), 2);
    await until(async () => {
      await capacity.refresh();
      return !cluster.pods.has(podName(1));
    });
    t.ok(cluster.pods.has(podName(0)), 'one stays, for its log');
    pass(15_000);
    await view(capacity);
    t.equal(creations(), 4);
    pass(500_000);
    const successor = create();
    await view(successor);
    t.ok(cluster.pods.has(podName(0)), 'the next autoscaler keeps it, too');
    pass(100_000);
    await successor.refresh();
    t.notOk(cluster.pods.has(podName(0)), 'and for as long since its end');
  },
);

t.test('a watch continues from its version, and begins anew after 410 or a lost connection', async (t) => {
  const { cluster, capacity, view, viewWhen } = open(t);
  await view(capacity);
  await capacity.want(policy, 'small', 1);
  await until(() => cluster.calls.includes('watch'));
  cluster.endWatches();
  await until(() => cluster.calls.filter((call) => call === 'watch').length === 2);
  cluster.start(podName(0));
  await viewWhen(capacity, ({ machines }) => machines.length === 1);
  t.equal(cluster.calls.filter((call) => call === 'list').length, 1, 'without another list');

  for (const error of [
    new KubernetesError(410, 'too old resource version'),
    new KubernetesError(0, 'connection lost'),
  ]) {
    cluster.endWatches(error);
    await capacity.want(policy, 'small', 1);
    cluster.compact();
    cluster.delete(podName(0));
    await viewWhen(capacity, ({ machines }) => machines.length === 0);
    await capacity.want(policy, 'small', 1);
    cluster.start(podName(0));
    await viewWhen(capacity, ({ machines }) => machines.length === 1);
  }

  const away = new KubernetesError(0, 'the API server of the cluster: connect ECONNREFUSED');
  cluster.refuses = away;
  cluster.endWatches(away);
  await until(() =>
    view(capacity).then(
      () => false,
      (error) => error === away,
    ),
  );
  cluster.refuses = null;
  t.match(await view(capacity), { wanted: { small: 1 } });
});
