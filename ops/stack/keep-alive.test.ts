import t from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { until } from '../../platform/testing/waiting.js';
import { keepAlive, type Part } from './keep-alive.js';

const log = createLogger({ level: 'silent', name: 'test' });
const quick = { min_delay_ms: 1, max_delay_ms: 4 };

/** A part that exits when `end` or `stop` is called. */
class FakePart implements Part {
  end!: () => void;
  stopped = 0;
  readonly exited = new Promise<void>((resolve) => {
    this.end = resolve;
  });

  async stop(): Promise<void> {
    this.stopped += 1;
    this.end();
  }
}

t.test('a part that exits is restarted until it is stopped', async (t) => {
  const parts: FakePart[] = [];
  const start = async () => {
    parts.push(new FakePart());
    return parts.at(-1) as FakePart;
  };
  const kept = await keepAlive('part', start, log, quick);
  parts[0]?.end();
  await until(() => parts.length === 2);
  await kept.stop();
  t.equal(parts.length, 2);
  t.equal(parts[0]?.stopped, 0);
  t.ok((parts[1]?.stopped ?? 0) > 0);
});

t.test('a failed first start is thrown', async (t) => {
  await t.rejects(
    keepAlive('part', () => Promise.reject(new Error('no')), log, quick),
    /no/,
  );
});

t.test('a failed restart is retried', async (t) => {
  const parts: FakePart[] = [];
  let calls = 0;
  const start = async () => {
    calls += 1;
    if (calls === 2 || calls === 3) throw new Error('not yet');
    parts.push(new FakePart());
    return parts.at(-1) as FakePart;
  };
  const kept = await keepAlive('part', start, log, quick);
  parts[0]?.end();
  await until(() => parts.length === 2);
  t.equal(calls, 4);
  await kept.stop();
});

t.test('stopping during a restart stops the restarted part', async (t) => {
  const first = new FakePart();
  const second = new FakePart();
  let release: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let calls = 0;
  const start = async () => {
    calls += 1;
    if (calls === 1) return first;
    await gate;
    return second;
  };
  const kept = await keepAlive('part', start, log, quick);
  first.end();
  await until(() => calls === 2);
  const stopped = kept.stop();
  release();
  await stopped;
  t.ok(second.stopped > 0);
});
