/** Tests of stop requests and of errors that count. */
import t from 'tap';
import { describeError } from './failure.js';
import { type StopReason, StopRequests } from './stop-requests.js';

t.test('the most urgent reason to stop wins, and each change is reported once', async (t) => {
  const stops = new StopRequests();
  const reported: StopReason[] = [];
  stops.watch((reason) => reported.push(reason));
  t.equal(stops.current, null);
  stops.setDesired('run');
  stops.request('drain');
  stops.setDesired('pause');
  stops.setDesired('pause');
  stops.setDesired('cancel');
  stops.setDesired('pause');
  t.equal(stops.current, 'cancel', 'a late pause does not undo a cancellation');
  t.strictSame(reported, ['drain', 'pause', 'cancel']);
});

t.test('a late watcher is called at once, and a removed watcher is not called', async (t) => {
  const stops = new StopRequests();
  const reported: string[] = [];
  const leave = stops.watch(() => reported.push('first'));
  leave();
  stops.request('drain');
  stops.watch(() => reported.push('late'));
  t.strictSame(reported, ['late']);
});

t.test('a resize ends no attempt and yields to every other reason', async (t) => {
  const stops = new StopRequests();
  stops.request('resize');
  t.strictSame([stops.current, stops.ending], ['resize', null]);
  stops.request('drain');
  t.strictSame([stops.current, stops.ending], ['drain', 'drain']);
  stops.withdraw('drain');
  stops.withdraw('resize');
  t.equal(stops.current, null);
});

t.test('a full disk, a damaged dataset and an unexpected error are distinguished', async (t) => {
  const full = Object.assign(new Error('write'), { code: 'ENOSPC' });
  const damaged = Object.assign(new Error('digest'), { code: 'dataset_corrupt' });
  t.match(describeError(full), { code: 'disk_full', category: 'capacity', deterministic: false });
  t.match(describeError(damaged), { code: 'dataset_corrupt', category: 'data', deterministic: true });
  t.match(describeError(new TypeError('x is not y')), { code: 'internal_error', deterministic: false });
});
