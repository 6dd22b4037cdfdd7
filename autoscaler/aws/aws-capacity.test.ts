/**
 * Tests of the AWS calls against a stand-in that speaks the protocol, throttles, and reports changes late.
 */
import { AutoScalingClient } from '@aws-sdk/client-auto-scaling';
import t, { type Test } from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { decide } from '../controller/decide.js';
import { EMPTY_STATE } from '../controller/types.js';
import { AutoScalingStandIn } from '../testing/autoscaling-stand-in.js';
import { poolWith } from '../testing/scene.js';
import { NOW, policyOf } from '../testing/world.js';
import { AwsCapacity, CONSISTENCY_MS, MAX_HOLD_MS } from './aws-capacity.js';
import { Groups } from './groups.js';

const log = createLogger({ level: 'silent', name: 'test' });
const policy = policyOf({
  types: [
    { name: 'spot', slots: 4, max: 10, price_per_hour: 1, group: 'zf-spot' },
    { name: 'on-demand', slots: 4, max: 10, price_per_hour: 3 },
  ],
});

async function open(t: Test) {
  const aws = new AutoScalingStandIn();
  aws.addGroup('zf-spot', 10, ['drain']);
  aws.addGroup('on-demand', 2);
  const endpoint = await aws.listen();
  t.teardown(() => aws.close());
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' };
  const client = new AutoScalingClient({ endpoint, region: 'eu-central-1', credentials, maxAttempts: 4 });
  t.teardown(() => client.destroy());
  const time = { now: NOW };
  const capacity = new AwsCapacity({ groups: new Groups(client), log, clock: () => time.now });
  const view = async (viewed = policy) => {
    await capacity.refresh([viewed]);
    return capacity.view(viewed);
  };
  return { aws, capacity, time, view };
}

const idOf = (index: number) => `i-${String(index).padStart(17, '0')}`;

t.test('lists machines and sizes of groups over several pages', async (t) => {
  const { aws, capacity, view } = await open(t);
  t.same(await view(), { machines: [], wanted: { spot: 0, 'on-demand': 0 }, problems: [] });
  await capacity.want(policy, 'spot', 2);
  await capacity.want(policy, 'on-demand', 1);
  t.same(aws.calls, ['SetDesiredCapacity zf-spot 2', 'SetDesiredCapacity on-demand 1']);
  aws.advance();
  t.same(await view(), {
    machines: [
      { id: idOf(1), type: 'spot', terminating: false },
      { id: idOf(2), type: 'spot', terminating: false },
      { id: idOf(3), type: 'on-demand', terminating: false },
    ],
    wanted: { spot: 2, 'on-demand': 1 },
    problems: [],
  });
  await capacity.want(policy, 'on-demand', 5);
  t.equal(aws.group('on-demand').desired, 2, 'the size is limited to the maximum of the group');
  const other = policyOf({ types: [{ name: 'none', slots: 1, max: 1, price_per_hour: 0 }] });
  await t.rejects(view(other), {
    code: 'invalid_configuration',
    message: /no Auto Scaling group none/,
  });
});

t.test('throttled calls are retried; a call that stays throttled has no effect', async (t) => {
  const { aws, capacity, view } = await open(t);
  aws.throttled = 2;
  await view();
  t.equal(aws.throttled, 0);
  aws.throttled = 2;
  await capacity.want(policy, 'spot', 3);
  t.same(aws.calls, ['SetDesiredCapacity zf-spot 3']);
  aws.throttled = 1000;
  await t.rejects(capacity.want(policy, 'spot', 4), { name: 'Throttling' });
  aws.throttled = 0;
  t.match(await view(), { wanted: { spot: 3 } });
});

t.test('requested sizes count before AWS reports them', async (t) => {
  const { aws, capacity, time, view } = await open(t);
  await view();
  aws.stale = 1;
  await capacity.want(policy, 'spot', 2);
  t.same(await view(), { machines: [], wanted: { spot: 2, 'on-demand': 0 }, problems: [] });
  aws.advance();
  aws.advance();
  aws.stale = 0;
  await view();
  aws.stale = 1;
  await capacity.retire(policy, idOf(1));
  await capacity.retire(policy, idOf(1));
  t.same(await view(), {
    machines: [
      { id: idOf(1), type: 'spot', terminating: true },
      { id: idOf(2), type: 'spot', terminating: false },
    ],
    wanted: { spot: 1, 'on-demand': 0 },
    problems: [],
  });
  t.equal(aws.calls.filter((call) => call.startsWith('Terminate')).length, 1);
  time.now += CONSISTENCY_MS;
  aws.group('zf-spot').desired = 4;
  aws.advance();
  aws.stale = 0;
  t.match(await view(), { wanted: { spot: 4 } }, 'changes by other clients are seen afterwards');
});

t.test(
  'the hook of a machine that was retired is completed; an interrupted machine waits for its agent',
  async (t) => {
    const { aws, capacity, view } = await open(t);
    await capacity.want(policy, 'spot', 2);
    for (let i = 0; i < 3; i += 1) aws.advance();
    await view();
    await capacity.retire(policy, idOf(1));
    aws.interrupt(idOf(2));
    aws.advance();
    t.match(
      aws.group('zf-spot').instances.map(({ state }) => state),
      ['Terminating:Wait', 'Terminating:Wait', 'Pending'],
      'the group launches a replacement',
    );
    t.match(await view(), {
      machines: [
        { id: idOf(1), terminating: true },
        { id: idOf(2), terminating: true },
        { id: idOf(3), terminating: false },
      ],
      wanted: { spot: 1 },
    });
    t.match(aws.group('zf-spot').instances, [
      { state: 'Terminating:Proceed' },
      { state: 'Terminating:Wait' },
      {},
    ]);
    await capacity.retire(policy, idOf(2));
    aws.advance();
    t.match(await view(), {
      machines: [{ id: idOf(3), terminating: false }],
      wanted: { spot: 1 },
    });
    t.equal(aws.calls.filter((call) => call.startsWith('Terminate')).length, 1, 'it was terminating already');
    await capacity.retire(policy, idOf(2));
    await capacity.retire(policy, 'i-unknown');
  },
);

t.test('terminating an instance that is gone is no error', async (t) => {
  const { aws, capacity, view } = await open(t);
  await capacity.want(policy, 'spot', 1);
  aws.advance();
  await view();
  aws.group('zf-spot').instances = [];
  await capacity.retire(policy, idOf(1));
  t.same(aws.calls.slice(1), [`TerminateInstanceInAutoScalingGroup ${idOf(1)}`]);
});

/** An instance with a ten-minute lifecycle hook that AWS interrupts, after the autoscaler has seen it. */
async function leaving(t: Test) {
  const parts = await open(t);
  const { aws, capacity, time, view } = parts;
  await capacity.want(policy, 'spot', 2);
  for (let i = 0; i < 2; i += 1) aws.advance();
  aws.interrupt(idOf(1));
  aws.advance();
  /** Lets 30 seconds pass, then does what a reconciliation does. */
  const reconcile = async (saving: readonly string[]) => {
    aws.pass(30);
    time.now += 30_000;
    await view();
    await capacity.hold(policy, saving);
  };
  const stateOf = (id: string) => aws.group('zf-spot').instances.find((each) => each.id === id)?.state;
  const heartbeats = () => aws.calls.filter((call) => call.startsWith('RecordLifecycleActionHeartbeat'));
  return { ...parts, reconcile, stateOf, heartbeats };
}

t.test('the hook of a machine that is still saving is extended until the machine is done', async (t) => {
  const { aws, capacity, reconcile, stateOf, heartbeats } = await leaving(t);
  for (let i = 0; i < 60; i += 1) await reconcile([idOf(1), idOf(2)]);
  t.equal(stateOf(idOf(1)), 'Terminating:Wait', 'after half an hour');
  t.equal(stateOf(idOf(2)), 'InService');
  t.same(
    [...new Set(heartbeats())],
    [`RecordLifecycleActionHeartbeat zf-spot ${idOf(1)}`],
    'no heartbeat for any other instance',
  );
  t.ok(heartbeats().length <= 10, `${heartbeats().length} calls, a few in each timeout of the hook`);
  await capacity.retire(policy, idOf(1));
  t.equal(stateOf(idOf(1)), 'Terminating:Proceed');
  aws.advance();
  await reconcile([idOf(1)]);
});

t.test('an instance whose agent stops reporting terminates when its hook times out', async (t) => {
  const { reconcile, stateOf, heartbeats } = await leaving(t);
  for (let i = 0; i < 10; i += 1) await reconcile([idOf(1)]);
  t.equal(heartbeats().length, 1);
  for (let i = 0; i < 19; i += 1) await reconcile([]);
  t.equal(stateOf(idOf(1)), 'Terminating:Proceed');
});

t.test('no instance is held for ever', async (t) => {
  const { reconcile, stateOf, heartbeats } = await leaving(t);
  const most = MAX_HOLD_MS / 30_000;
  for (let i = 0; i < most + 20; i += 1) await reconcile([idOf(1)]);
  t.equal(stateOf(idOf(1)), 'Terminating:Proceed');
  t.ok(heartbeats().length > 10);
});

t.test('a throttled heartbeat is sent at the next reconciliation', async (t) => {
  const { aws, capacity, time, reconcile, stateOf, heartbeats } = await leaving(t);
  for (let i = 0; i < 7; i += 1) await reconcile([idOf(1)]);
  time.now += 30_000;
  aws.throttled = 1000;
  await t.rejects(capacity.hold(policy, [idOf(1)]), { name: 'Throttling' });
  aws.throttled = 0;
  await reconcile([idOf(1)]);
  t.equal(heartbeats().length, 1);
  t.equal(stateOf(idOf(1)), 'Terminating:Wait');
});

t.test('why no instance is launched is known with the next view', async (t) => {
  const { aws, capacity, time, view } = await open(t);
  aws.now = time.now;
  const quota =
    'You have requested more vCPU capacity than your current vCPU limit of 0 allows. Launching EC2 instance failed.';
  aws.refusals.set('zf-spot', quota);
  await view();
  await capacity.want(policy, 'spot', 2);
  aws.advance();
  t.same((await view()).problems, [{ type: 'spot', code: 'quota', message: quota }]);
  aws.refusals.clear();
  time.now += 20_000;
  aws.now = time.now;
  aws.advance();
  t.same((await view()).problems, []);
});

t.test('pools are described in one call', async (t) => {
  const { aws, capacity, view } = await open(t);
  const other = policyOf({ pool: 'other', types: [{ name: 'third', slots: 1, max: 1, price_per_hour: 0 }] });
  aws.addGroup('third', 1);
  await capacity.refresh([policy, other]);
  t.match(await capacity.view(policy), { wanted: { spot: 0, 'on-demand': 0 } });
  t.match(await capacity.view(other), { wanted: { third: 0 } });
  t.match(await view(), { machines: [] });
});

t.test('a rebalancing, a lost instance, and hooks that cannot be completed now', async (t) => {
  const { aws, capacity, time, view } = await open(t);
  await view();
  await capacity.want(policy, 'spot', 2);
  for (let i = 0; i < 2; i += 1) aws.advance();
  aws.rebalance(idOf(1));
  const during = await view();
  t.equal(during.machines.length, 3, 'the successor is there first');
  t.match(during, { wanted: { spot: 2 }, problems: [] });
  const { actions } = decide(policy, { ...poolWith({}), ...during }, EMPTY_STATE, NOW);
  t.same(
    actions.filter((action) => action.kind === 'set_size' && action.machines > 2),
    [],
    'the size is not raised for it',
  );

  aws.interrupt(idOf(1));
  aws.advance();
  await view();
  aws.refusesHooks = true;
  await t.rejects(capacity.retire(policy, idOf(1)), { name: 'ResourceContention' });
  aws.refusesHooks = false;
  await capacity.retire(policy, idOf(1));
  aws.advance();
  t.equal((await view()).machines.length, 2);

  aws.lose(idOf(2));
  time.now += CONSISTENCY_MS;
  t.equal((await view()).machines.length, 1, 'gone without a hook');
  aws.advance();
  t.match(await view(), { machines: [{ id: idOf(3) }, { id: idOf(4) }], wanted: { spot: 2 } });
});
