/** The calls to AWS against a stand-in that speaks their protocol, throttles, and tells of changes late. */
import { AutoScalingClient } from '@aws-sdk/client-auto-scaling';
import t, { type Test } from 'tap';
import { createLogger } from '../../platform/logging.js';
import { AutoScalingStandIn } from '../testing/autoscaling-stand-in.js';
import { NOW, policyOf } from '../testing/world.js';
import { AwsCapacity, CONSISTENCY_MS } from './aws-capacity.js';
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
