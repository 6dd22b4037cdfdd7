import t from 'tap';
import { machine, open, other, policy } from '../testing/slurm-capacity.js';
import { NOW } from '../testing/world.js';

t.test('the queue is the record of what was requested', async (t) => {
  const { slurm, capacity, create, next } = open();
  t.same(await next(capacity), { machines: [], wanted: { small: 0, large: 0 }, problems: [] });
  await capacity.want(policy, 'small', 3);
  await capacity.want(policy, 'small', 3);
  await capacity.want(policy, 'large', 1);
  await capacity.want(other, 'large', 1);
  t.same(
    [...slurm.queue.values()].map(({ name }) => name),
    [
      'zerofleet/here/default/small/0',
      'zerofleet/here/default/small/1',
      'zerofleet/here/default/small/2',
      'zerofleet/here/default/large/0',
      'zerofleet/here/other/large/0',
    ],
  );
  t.same(await capacity.view(policy), { machines: [], wanted: { small: 3, large: 1 }, problems: [] });
  slurm.start([1]);
  t.match(await next(capacity), { machines: [machine('slurm-1')], wanted: { small: 3, large: 1 } });

  const successor = create();
  t.match(await next(successor), { machines: [machine('slurm-1')], wanted: { small: 3, large: 1 } });
  await successor.want(policy, 'small', 3);
  t.equal(slurm.submissions.length, 5, 'another autoscaler starts nothing twice');
  t.match(await next(create('elsewhere')), { machines: [], wanted: { small: 0, large: 0 } });
});

t.test('requests are withdrawn, the newest first, and machines end by their id', async (t) => {
  const { slurm, ended, capacity, next } = open();
  await capacity.want(policy, 'small', 4);
  slurm.start([1, 2]);
  await next(capacity);
  // Job 4 starts after it was listed.
  slurm.start([4]);
  await capacity.want(policy, 'small', 1);
  t.same(slurm.cancelled, [3], 'machines stay');
  t.match(await next(capacity), { machines: [{ id: 'slurm-1' }, { id: 'slurm-2' }, { id: 'slurm-4' }] });
  t.match(await next(capacity), { wanted: { small: 3 } });
  await capacity.retire(policy, 'slurm-2');
  await capacity.retire(policy, 'slurm-2');
  await capacity.retire(policy, 'slurm-99');
  t.same(slurm.cancelled, [3, 2]);
  const { machines, wanted } = await next(capacity);
  t.same(machines, [machine('slurm-1'), machine('slurm-2', true), machine('slurm-4')]);
  t.equal(wanted.small, 2);
  // The number of an allocation that is ending is not used again.
  await capacity.want(policy, 'small', 3);
  t.match(slurm.submissions.at(-1)?.options, ['--job-name=zerofleet/here/default/small/2']);
  slurm.end(2, 'CANCELLED');
  await next(capacity);
  t.same(ended, [], 'what the autoscaler ends is no fault');
});

t.test('ends without a request have a cause', async (t) => {
  const { slurm, ended, capacity, next } = open();
  await capacity.want(policy, 'small', 9);
  slurm.start([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await next(capacity, 100_000);
  slurm.end(1, 'NODE_FAIL', 'NodeDown');
  slurm.end(2, 'TIMEOUT', 'TimeLimit');
  slurm.end(3, 'PREEMPTED');
  slurm.end(4, 'CANCELLED');
  slurm.end(5, 'OUT_OF_MEMORY');
  slurm.change(6, { states: ['PENDING', 'REQUEUED'], reason: 'BeginTime', restarts: 1, starts_at: 0 });
  slurm.change(7, { preempted_at: NOW + 100_000 });
  const { machines, wanted } = await next(capacity);
  t.same(
    machines,
    [machine('slurm-7', true), machine('slurm-8'), machine('slurm-9')],
    'the grace period of a preemption has begun',
  );
  t.equal(wanted.small, 3, 'a requeued allocation is requested again');
  t.same(slurm.terminated, [7], 'Slurm itself tells the agent only at its end');
  slurm.end(7, 'COMPLETED');
  slurm.start([6]);
  t.match(await next(capacity), { machines: [{ id: 'slurm-6-1' }, { id: 'slurm-8' }, { id: 'slurm-9' }] });
  slurm.queue.delete(8);
  t.match(await next(capacity), { machines: [{ id: 'slurm-6-1' }, { id: 'slurm-9' }] });
  slurm.queue.delete(9);
  await next(capacity);
  t.equal(slurm.calls.filter((call) => call === 'records').length, 1, 'accounting is disabled');
  t.same(
    ended,
    ['node_failed', 'time_limit', 'preempted', 'cancelled', 'failed', 'requeued', 'preempted']
      .concat('unknown', 'unknown')
      .map((cause) => `default/small ${cause}`),
  );
  t.same(slurm.terminated, [7]);
});

t.test('the accounting knows what the queue has forgotten', async (t) => {
  const { slurm, ended, capacity, next } = open();
  await capacity.want(policy, 'small', 2);
  slurm.start([1, 2]);
  await next(capacity);
  slurm.accounting = [{ id: 1, states: ['NODE_FAIL'], reason: 'NodeDown' }];
  slurm.queue.clear();
  t.match(await next(capacity), { machines: [], wanted: { small: 0 } });
  t.same(ended, ['default/small node_failed', 'default/small unknown']);
});

t.test('an allocation near its time limit does not count any more', async (t) => {
  const { slurm, ended, capacity, next } = open();
  await capacity.want(policy, 'small', 2);
  slurm.start([1], 600_000);
  t.match(await next(capacity), { wanted: { small: 2 } });
  t.match(await next(capacity, 530_000), { wanted: { small: 2 } });
  const { machines, wanted } = await next(capacity, 5_000);
  t.same(machines, [machine('slurm-1', true)]);
  t.equal(wanted.small, 1);
  slurm.end(1, 'COMPLETED');
  await next(capacity);
  t.same(ended, ['default/small time_limit'], 'its agent has saved in time');
});

t.test('a suspended allocation provides no ranks until Slurm resumes it', async (t) => {
  const { slurm, capacity, next } = open();
  await capacity.want(policy, 'small', 1);
  slurm.start([1]);
  slurm.change(1, { states: ['SUSPENDED'] });
  t.match(await next(capacity), { machines: [{ terminating: true }], wanted: { small: 0 } });
  slurm.change(1, { states: ['RUNNING'] });
  t.match(await next(capacity), { machines: [{ terminating: false }], wanted: { small: 1 } });
});

t.test('requests that wait for more than their turn have a reason', async (t) => {
  const { slurm, capacity, next } = open();
  await capacity.want(policy, 'small', 2);
  slurm.start([1]);
  for (const [reason, problems] of [
    ['Priority', []],
    [
      'QOSMaxGRESPerUser',
      [{ type: 'small', code: 'quota', message: 'allocations wait for QOSMaxGRESPerUser' }],
    ],
    [
      'PartitionDown',
      [{ type: 'small', code: 'no_capacity', message: 'allocations wait for PartitionDown' }],
    ],
  ] as const) {
    slurm.change(2, { reason });
    t.same((await next(capacity)).problems, problems);
  }
  await capacity.want(policy, 'small', 1);
  t.same((await next(capacity)).problems, []);
});

t.test('one list of the queue serves all pools, and a call submits a limited number', async (t) => {
  const { slurm, capacity, next } = open();
  await next(capacity);
  await capacity.view(other);
  t.same(slurm.calls, ['jobs']);
  await capacity.want(policy, 'small', 80);
  t.match(await capacity.view(policy), { wanted: { small: 50 } });
  await capacity.want(policy, 'small', 80);
  t.match(await next(capacity), { wanted: { small: 80 } });
  await capacity.hold();
  await capacity.close();
  t.same(slurm.cancelled, [], 'allocations outlive the autoscaler');
});

t.test('a request that is submitted while the queue is read stays', async (t) => {
  const { slurm, ended, capacity } = open();
  const read = slurm.jobs.bind(slurm);
  slurm.jobs = async (installation) => {
    const jobs = await read(installation);
    await capacity.want(policy, 'small', 1);
    return jobs;
  };
  await capacity.refresh([policy, other]);
  t.match(await capacity.view(policy), { wanted: { small: 1 } });
  t.same(ended, []);
});

t.test('commands of Slurm that fail are repeated', async (t) => {
  const { slurm, ended, capacity, next } = open();
  await capacity.want(policy, 'small', 2);
  slurm.start([1]);
  slurm.change(1, { preempted_at: NOW });
  slurm.change(2, { reason: 'JobHeldAdmin' });
  const { cancel, terminateAgents } = slurm;
  const fail = async () => {
    throw new Error('scancel failed');
  };
  slurm.cancel = fail;
  slurm.terminateAgents = fail;
  t.match(await next(capacity), { machines: [machine('slurm-1', true)], wanted: { small: 0 } });
  Object.assign(slurm, { cancel, terminateAgents });
  await next(capacity);
  t.same([slurm.cancelled, slurm.terminated, ended], [[2], [1], ['default/small refused']]);
});
