/** The calls to AWS against a stand-in that speaks their protocol, throttles, and tells of changes late. */
import { AutoScalingClient } from '@aws-sdk/client-auto-scaling';
import t, { type Test } from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { AutoScalingStandIn } from '../testing/autoscaling-stand-in.js';
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
  return { aws, capacity, time };
}

const idOf = (index: number) => `i-${String(index).padStart(17, '0')}`;

t.test('groups are seen as machines and sizes, over several pages', async (t) => {
  const { aws, capacity } = await open(t);
  t.same(await capacity.view(policy), { machines: [], wanted: { spot: 0, 'on-demand': 0 } });
  await capacity.want(policy, 'spot', 2);
  await capacity.want(policy, 'on-demand', 1);
  t.same(aws.calls, ['SetDesiredCapacity zf-spot 2', 'SetDesiredCapacity on-demand 1']);
  aws.advance();
  t.same(await capacity.view(policy), {
    machines: [
      { id: idOf(1), type: 'spot', leaving: false },
      { id: idOf(2), type: 'spot', leaving: false },
      { id: idOf(3), type: 'on-demand', leaving: false },
    ],
    wanted: { spot: 2, 'on-demand': 1 },
  });
  await capacity.want(policy, 'on-demand', 5);
  t.equal(aws.group('on-demand').desired, 2, 'not above what the group may have');
  const other = policyOf({ types: [{ name: 'none', slots: 1, max: 1, price_per_hour: 0 }] });
  await t.rejects(capacity.view(other), {
    code: 'invalid_configuration',
    message: /no Auto Scaling group none/,
  });
});

t.test(
  'a call that is throttled is repeated; one that is throttled for too long has done nothing',
  async (t) => {
    const { aws, capacity } = await open(t);
    aws.throttled = 2;
    await capacity.view(policy);
    t.equal(aws.throttled, 0);
    aws.throttled = 2;
    await capacity.want(policy, 'spot', 3);
    t.same(aws.calls, ['SetDesiredCapacity zf-spot 3']);
    aws.throttled = 1000;
    await t.rejects(capacity.want(policy, 'spot', 4), { name: 'Throttling' });
    aws.throttled = 0;
    t.match(await capacity.view(policy), { wanted: { spot: 3 } });
  },
);

t.test('what was asked for counts before it is told of', async (t) => {
  const { aws, capacity, time } = await open(t);
  await capacity.view(policy);
  aws.stale = 1;
  await capacity.want(policy, 'spot', 2);
  t.same(await capacity.view(policy), { machines: [], wanted: { spot: 2, 'on-demand': 0 } });
  aws.advance();
  aws.advance();
  aws.stale = 0;
  await capacity.view(policy);
  aws.stale = 1;
  await capacity.retire(policy, idOf(1));
  await capacity.retire(policy, idOf(1));
  t.same(await capacity.view(policy), {
    machines: [
      { id: idOf(1), type: 'spot', leaving: true },
      { id: idOf(2), type: 'spot', leaving: false },
    ],
    wanted: { spot: 1, 'on-demand': 0 },
  });
  t.equal(aws.calls.filter((call) => call.startsWith('Terminate')).length, 1);
  time.now += CONSISTENCY_MS;
  aws.group('zf-spot').desired = 4;
  aws.advance();
  aws.stale = 0;
  t.match(await capacity.view(policy), { wanted: { spot: 4 } }, 'somebody else may change it');
});

t.test(
  'one that was ended need not wait for its hook; one that the cloud ends waits for its agent',
  async (t) => {
    const { aws, capacity } = await open(t);
    await capacity.want(policy, 'spot', 2);
    for (let i = 0; i < 3; i += 1) aws.advance();
    await capacity.view(policy);
    await capacity.retire(policy, idOf(1));
    aws.interrupt(idOf(2));
    aws.advance();
    t.match(
      aws.group('zf-spot').instances.map(({ state }) => state),
      ['Terminating:Wait', 'Terminating:Wait', 'Pending'],
      'and another one comes in its place',
    );
    t.match(await capacity.view(policy), {
      machines: [
        { id: idOf(1), leaving: true },
        { id: idOf(2), leaving: true },
        { id: idOf(3), leaving: false },
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
    t.match(await capacity.view(policy), {
      machines: [{ id: idOf(3), leaving: false }],
      wanted: { spot: 1 },
    });
    t.equal(aws.calls.filter((call) => call.startsWith('Terminate')).length, 1, 'it was leaving already');
    await capacity.retire(policy, idOf(2));
    await capacity.retire(policy, 'i-unknown');
  },
);

t.test('one that is gone meanwhile is no error', async (t) => {
  const { aws, capacity } = await open(t);
  await capacity.want(policy, 'spot', 1);
  aws.advance();
  await capacity.view(policy);
  aws.group('zf-spot').instances = [];
  await capacity.retire(policy, idOf(1));
  t.same(aws.calls.slice(1), [`TerminateInstanceInAutoScalingGroup ${idOf(1)}`]);
});

/** An instance that the cloud takes away, seen by the autoscaler, whose hook has ten minutes. */
async function leaving(t: Test) {
  const parts = await open(t);
  const { aws, capacity, time } = parts;
  await capacity.want(policy, 'spot', 2);
  for (let i = 0; i < 2; i += 1) aws.advance();
  aws.interrupt(idOf(1));
  aws.advance();
  /** Half a minute, and what an autoscaler does then. */
  const look = async (saving: readonly string[]) => {
    aws.pass(30);
    time.now += 30_000;
    await capacity.view(policy);
    await capacity.hold(policy, saving);
  };
  const stateOf = (id: string) => aws.group('zf-spot').instances.find((each) => each.id === id)?.state;
  const heartbeats = () => aws.calls.filter((call) => call.startsWith('RecordLifecycleActionHeartbeat'));
  return { ...parts, look, stateOf, heartbeats };
}

t.test(
  'a machine that still saves is held for longer than its hook would, and goes when it is done',
  async (t) => {
    const { aws, capacity, look, stateOf, heartbeats } = await leaving(t);
    for (let i = 0; i < 60; i += 1) await look([idOf(1), idOf(2)]);
    t.equal(stateOf(idOf(1)), 'Terminating:Wait', 'after half an hour');
    t.equal(stateOf(idOf(2)), 'InService');
    t.same(
      [...new Set(heartbeats())],
      [`RecordLifecycleActionHeartbeat zf-spot ${idOf(1)}`],
      'and nobody else',
    );
    t.ok(heartbeats().length <= 10, `${heartbeats().length} calls, a few in each of the hook's times`);
    await capacity.retire(policy, idOf(1));
    t.equal(stateOf(idOf(1)), 'Terminating:Proceed');
    aws.advance();
    await look([idOf(1)]);
  },
);

t.test('one whose agent says nothing more goes when the time of its hook is over', async (t) => {
  const { look, stateOf, heartbeats } = await leaving(t);
  for (let i = 0; i < 10; i += 1) await look([idOf(1)]);
  t.equal(heartbeats().length, 1);
  for (let i = 0; i < 19; i += 1) await look([]);
  t.equal(stateOf(idOf(1)), 'Terminating:Proceed');
});

t.test('nobody is held for ever', async (t) => {
  const { look, stateOf, heartbeats } = await leaving(t);
  const most = MAX_HOLD_MS / 30_000;
  for (let i = 0; i < most + 20; i += 1) await look([idOf(1)]);
  t.equal(stateOf(idOf(1)), 'Terminating:Proceed');
  t.ok(heartbeats().length > 10);
});

t.test('a heartbeat that is throttled is sent at the next look', async (t) => {
  const { aws, capacity, time, look, stateOf, heartbeats } = await leaving(t);
  for (let i = 0; i < 7; i += 1) await look([idOf(1)]);
  time.now += 30_000;
  aws.throttled = 1000;
  await t.rejects(capacity.hold(policy, [idOf(1)]), { name: 'Throttling' });
  aws.throttled = 0;
  await look([idOf(1)]);
  t.equal(heartbeats().length, 1);
  t.equal(stateOf(idOf(1)), 'Terminating:Wait');
});
