/** The small decisions of an agent: who may stop, which errors count. */
import t from 'tap';
import { describeError } from './failure.js';
import { type StopReason, StopRequests } from './stop-requests.js';

t.test('the most pressing reason to stop wins, and each change is told once', async (t) => {
  const stops = new StopRequests();
  const told: StopReason[] = [];
  stops.watch((reason) => told.push(reason));
  t.equal(stops.current, null);
  stops.setDesired('run');
  stops.request('drain');
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
  stops.request('drain');
  stops.watch(() => told.push('late'));
  t.strictSame(told, ['late']);
});

t.test('a wish for other ranks ends no attempt, and yields to whatever does', async (t) => {
  const stops = new StopRequests();
  stops.request('resize');
  t.strictSame([stops.current, stops.ending], ['resize', null]);
  stops.request('drain');
  t.strictSame([stops.current, stops.ending], ['drain', 'drain']);
  stops.withdraw('drain');
  stops.withdraw('resize');
  t.equal(stops.current, null);
});

t.test('a full disk, a damaged dataset and a surprise are told apart', async (t) => {
  const full = Object.assign(new Error('write'), { code: 'ENOSPC' });
  const damaged = Object.assign(new Error('digest'), { code: 'dataset_corrupt' });
  t.match(describeError(full), { code: 'disk_full', category: 'capacity', deterministic: false });
  t.match(describeError(damaged), { code: 'dataset_corrupt', category: 'data', deterministic: true });
  t.match(describeError(new TypeError('x is not y')), { code: 'internal_error', deterministic: false });
});
