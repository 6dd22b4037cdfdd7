import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ZerofleetError } from '../../../contracts/index.js';
import { createLogger } from '../../../platform/logging/logging.js';
import type { JobExecution, LogInput } from '../../../state/index.js';
import { control } from '../../testing/held-lease.js';
import { Lease } from '../lease/lease.js';
import { workerLine } from '../supervisor/log-line.js';
import { LogReporter } from './log-reporter.js';

const log = createLogger({ level: 'silent', name: 'test' });
type Append = JobExecution['appendLogs'];

function reporter(t: Test, appendLogs: Append, intervalMs = 60_000) {
  const renewLease = async () => control;
  const onControl = () => undefined;
  const lease = new Lease(
    { store: { renewLease }, job_id: 'j', execution: '3-a', lease_ms: 60_000, log, onControl },
    performance.now(),
  );
  const logs = new LogReporter({ store: { appendLogs }, lease, interval_ms: intervalMs, log });
  t.teardown(async () => {
    lease.lose(new Error('test ends'));
    await logs.close();
    await lease.close();
  });
  return { logs, lease };
}

t.test('lines are written in order, in few batches, with their rank and the execution', async (t) => {
  const calls: Parameters<Append>[] = [];
  const { logs } = reporter(t, async (...call) => calls.push(call));
  for (let i = 0; i < 1_200; i++) logs.line(i % 2, workerLine(String(i)));
  logs.message('of the job\nand more of an error');
  await logs.flush();
  const lines = calls.flatMap(([, , batch]) => batch);
  t.same(
    lines.map(({ message }) => message),
    [...Array.from({ length: 1_200 }, (_, i) => String(i)), 'of the job'],
  );
  t.match(lines.at(-1), { rank: null, stream: 'worker' });
  t.same(
    calls.map(([job, execution, , options]) => [job, execution, options?.batch]),
    [1, 2, 3].map((batch) => ['j', '3-a', batch]),
  );
});

t.test('one write per interval, however many lines arrive', async (t) => {
  let writes = 0;
  const intervalMs = 250;
  const { logs } = reporter(t, async () => ++writes, intervalMs);
  const begun = performance.now();
  for (let i = 0; performance.now() < begun + 4 * intervalMs && i < 400; i++) {
    logs.line(0, workerLine(String(i)));
    await sleep(2);
  }
  const intervals = (performance.now() - begun) / intervalMs;
  t.ok(writes <= intervals + 1, `${writes} writes in ${intervals} intervals`);
});

t.test(
  'pending lines are bounded while the job store is unavailable, and dropped lines are reported',
  async (t) => {
    let away = true;
    const written: LogInput[] = [];
    const { logs } = reporter(t, async (_id, _execution, lines) => {
      if (away) throw new ZerofleetError('job_store_unavailable', 'away');
      written.push(...lines);
      return written.length;
    });
    for (let i = 0; i < 5_000; i++) logs.line(i % 2, workerLine(String(i)));
    away = false;
    await logs.flush();
    t.same(
      written.slice(0, 2_000).map(({ message }) => message),
      Array.from({ length: 2_000 }, (_, i) => String(i)),
    );
    t.match(written.slice(2_000), [
      { rank: 0, dropped: 1_500, message: /^1,500 lines dropped: the job store/ },
      { rank: 1, dropped: 1_500 },
    ]);
  },
);

t.test('a lost lease or a refusal stops nothing', async (t) => {
  const { logs, lease } = reporter(t, async () => {
    throw new ZerofleetError('stale_epoch', 'gone');
  });
  logs.message('a');
  await logs.flush();
  t.ok(lease.lost.aborted);
  logs.message('b');
  await logs.close();
  await logs.close();
});
