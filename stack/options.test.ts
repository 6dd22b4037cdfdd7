import t from 'tap';
import { parseParts, UsageError } from './options.js';

t.test('without arguments everything runs', async (t) => {
  t.strictSame(parseParts([]), { api: true, worker: true, autoscaler: false });
});

t.test('one part alone', async (t) => {
  t.strictSame(parseParts(['--api-only']), { api: true, worker: false, autoscaler: false });
  t.strictSame(parseParts(['--worker-only']), { api: false, worker: true, autoscaler: false });
});

t.test('workers that come and go', async (t) => {
  t.strictSame(parseParts(['--autoscale']), { api: true, worker: false, autoscaler: true });
});

t.test('what cannot be followed is refused with the usage', async (t) => {
  for (const args of [
    ['--api-only', '--worker-only'],
    ['--autoscale', '--worker-only'],
    ['--verbose'],
    ['api'],
  ]) {
    t.throws(() => parseParts(args), UsageError);
    t.throws(() => parseParts(args), /usage: zerofleet up, or npm start/);
  }
});
