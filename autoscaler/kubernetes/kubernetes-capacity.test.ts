import t from 'tap';
import { until } from '../../platform/testing/waiting.js';
import { open, other, podName, policy } from '../testing/kubernetes-capacity.js';
import { KubernetesError } from './errors.js';

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
