/** The small decisions of an agent: who may stop, how many ranks, which errors count. */
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { testSpec } from '../testing/start-message.js';
import { describeError } from './failure.js';
import { worldSize } from './processor.js';
import { Slots } from './slots.js';
import { type StopReason, StopRequests } from './stop-requests.js';

t.test('the most pressing reason to stop wins, and each change is told once', async (t) => {
  const stops = new StopRequests();
  const told: StopReason[] = [];
  stops.watch((reason) => told.push(reason));
  t.equal(stops.current, null);
  stops.setDesired('run');
  stops.drain();
  stops.setDesired('pause');
  stops.setDesired('pause');
  stops.setDesired('cancel');
  stops.setDesired('pause');
  t.equal(stops.current, 'cancel', 'a late pause does not undo a cancellation');
  t.strictSame(told, ['drain', 'pause', 'cancel']);
});

t.test('who comes late is told at once, who left is told nothing', async (t) => {
  const stops = new StopRequests();
  const told: string[] = [];
  const leave = stops.watch(() => told.push('first'));
  leave();
  stops.drain();
  stops.watch(() => told.push('late'));
  t.strictSame(told, ['late']);
});

t.test('slots are taken all or none and given back once', async (t) => {
  const slots = new Slots(4);
  const three = slots.tryReserve(3);
  t.equal(slots.tryReserve(2), null);
  const one = slots.tryReserve(1);
  t.ok(three && one);
  three?.();
  three?.();
  t.equal(slots.free, 3);
});

t.test('a world is what was asked for, within slots and leaves, never less than the minimum', async (t) => {
  const job = (requested_ranks: number, min = 1) => {
    const spec = testSpec();
    spec.resources.ranks.min = min;
    return { requested_ranks, spec } as Job;
  };
  t.equal(worldSize(job(3), 4), 3);
  t.equal(worldSize(job(3), 2), 2, 'fewer slots, fewer ranks: the result is the same');
  t.equal(worldSize(job(9), 16), 4, 'four leaves');
  t.equal(worldSize(job(4, 3), 2), null, 'too few slots for the minimum');
  t.equal(worldSize(job(1, 2), 4), 1, 'a person may resume on fewer');
  const sets = job(4, 2);
  sets.spec.zero.expert_parallel_size = 2;
  t.equal(worldSize(sets, 4), 4);
  t.equal(worldSize(sets, 3), 2, 'each set of experts on as many ranks');
  t.equal(worldSize(sets, 1), null, 'too few slots for all experts');
});

t.test('a full disk, a damaged dataset and a surprise are told apart', async (t) => {
  const full = Object.assign(new Error('write'), { code: 'ENOSPC' });
  const damaged = Object.assign(new Error('digest'), { code: 'dataset_corrupt' });
  t.match(describeError(full), { code: 'disk_full', category: 'capacity', deterministic: false });
  t.match(describeError(damaged), { code: 'dataset_corrupt', category: 'data', deterministic: true });
  t.match(describeError(new TypeError('x is not y')), { code: 'internal_error', deterministic: false });
});
