import t from 'tap';
import { parseParts, UsageError } from './options.js';

t.test('without arguments everything runs', async (t) => {
  t.strictSame(parseParts([]), { api: true, worker: true, autoscaler: false });
});

t.test('a single part', async (t) => {
  t.strictSame(parseParts(['--api-only']), { api: true, worker: false, autoscaler: false });
  t.strictSame(parseParts(['--worker-only']), { api: false, worker: true, autoscaler: false });
});

t.test('autoscaled workers', async (t) => {
  t.strictSame(parseParts(['--autoscale']), { api: true, worker: false, autoscaler: true });
});

t.test('invalid arguments are refused with the usage', async (t) => {
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
