import t, { type Test } from 'tap';
import { ZerofleetError } from '../../contracts/index.js';
import { FairQueue } from './fair-queue.js';
import type { TestTasks } from './testing/tasks.js';
import { ThreadPool, type ThreadPoolOptions } from './thread-pool.js';

const OPTIONS: ThreadPoolOptions = {
  module: new URL('testing/tasks.js', import.meta.url),
  threads: 2,
  heap_mb: 64,
  task_ms: 60_000,
  idle_ms: 60_000,
  limited: (limit, task) => new ZerofleetError('content_too_complex', `${task}: too much ${limit}`),
};

function poolOf(t: Test, changes: Partial<ThreadPoolOptions> = {}) {
  const pool = new ThreadPool<TestTasks>({ ...OPTIONS, ...changes });
  t.teardown(() => pool.close());
  return pool;
}

t.test('results, errors and bytes pass between threads', async (t) => {
  const pool = poolOf(t);
  const bytes = new Uint8Array([1, 2, 3]);
  const { bytes: reversed } = await pool.run('reverse', { bytes });
  t.strictSame([...reversed], [3, 2, 1]);
  t.equal(bytes.length, 0, 'transferred');
  const error = await pool.run('refuse', { line: 7 }).catch((thrown: unknown) => thrown);
  t.ok(error instanceof ZerofleetError);
  t.match(error, { code: 'dataset_line_invalid', message: 'line 7', details: { line: 7 } });
  const read = async (begin: number) => Buffer.of(begin);
  t.equal(await pool.run('sum', { count: 5 }, { read }), 10);
  const gone = async () => {
    throw new ZerofleetError('object_store_unavailable', 'gone');
  };
  await t.rejects(pool.run('sum', { count: 5 }, { read: gone }), { code: 'object_store_unavailable' });
});

t.test('a task that exceeds a limit fails alone', async (t) => {
  const quick = poolOf(t, { task_ms: 100 });
  const text = `${'a'.repeat(60)}!`;
  const slow = [quick.run('spin', undefined), quick.run('backtrack', { text })];
  for (const outcome of await Promise.allSettled(slow))
    t.match(outcome, { reason: { code: 'content_too_complex', message: /: too much time/ } });

  const pool = poolOf(t);
  const hoarding = pool.run('hoard', undefined);
  const exiting = pool.run('exit', undefined);
  const others = Array.from({ length: 20 }, () => pool.run('thread', undefined, { owner: 'another' }));
  const [hoarded, exited] = await Promise.allSettled([hoarding, exiting]);
  t.match(hoarded, { reason: { code: 'content_too_complex', message: 'hoard: too much memory' } });
  t.match(exited, { reason: { message: /exited with code 3/ } });
  t.equal((await Promise.all(others)).length, 20);
});

t.test('waiting for bytes does not count as compute time', async (t) => {
  const taskMs = 1000;
  const pool = poolOf(t, { task_ms: taskMs, threads: 1 });
  const read = async () => {
    await new Promise((resolve) => setTimeout(resolve, 2 * taskMs));
    return Buffer.of(1);
  };
  t.equal(await pool.run('sum', { count: 1 }, { read }), 1);
});

t.test('an input is read once a thread is free', async (t) => {
  const pool = poolOf(t, { threads: 1 });
  let most = 0;
  let held = 0;
  const tasks = Array.from({ length: 20 }, (_, i) =>
    pool
      .run('reverse', async () => {
        held += 1;
        most = Math.max(most, held);
        return { bytes: Uint8Array.of(i, 1) };
      })
      .finally(() => (held -= 1)),
  );
  const results = await Promise.all(tasks);
  t.same(
    results.map(({ bytes }) => bytes[1]),
    [...results.keys()],
  );
  t.equal(most, 1);
  const unread = async () => {
    throw new ZerofleetError('object_store_unavailable', 'gone');
  };
  await t.rejects(pool.run('reverse', unread), { code: 'object_store_unavailable' });
  t.type(await pool.run('thread', undefined), 'number', 'the thread goes on');
});

t.test('one owner leaves a thread to the others', async (t) => {
  const pool = poolOf(t);
  const endless = [1, 2, 3].map(() =>
    pool.run('spin', undefined, { owner: 'greedy' }).catch(() => undefined),
  );
  for (let i = 0; i < 3; i++) t.type(await pool.run('thread', undefined, { owner: 'modest' }), 'number');
  await pool.close();
  await Promise.all(endless);
});

t.test('an aborted task is not begun; one in progress goes on', async (t) => {
  const pool = poolOf(t, { threads: 1 });
  const left = new AbortController();
  const { signal } = left;
  let give: (bytes: Buffer) => void = () => undefined;
  const given = new Promise<Buffer>((resolve) => (give = resolve));
  const running = pool.run('sum', { count: 1 }, { signal, read: () => given });
  const waiting = pool.run('thread', undefined, { signal });
  left.abort(new Error('nobody waits'));
  give(Buffer.of(1));
  await t.rejects(waiting, /nobody waits/);
  t.equal(await running, 1);
});

t.test('an idle thread ends, and the next task gets a new one', async (t) => {
  const pool = poolOf(t, { idle_ms: 1, threads: 1 });
  const first = await pool.run('thread', undefined);
  let next = first;
  while (next === first) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    next = await pool.run('thread', undefined);
  }
  t.not(next, first);
});

t.test('close ends running and waiting tasks', async (t) => {
  const pool = poolOf(t, { threads: 1 });
  const tasks = ['spin', 'thread'] as const;
  const settled = Promise.allSettled(tasks.map((name) => pool.run(name, undefined)));
  await pool.close();
  await pool.close();
  for (const outcome of await settled) t.match(outcome, { reason: { code: 'shutting_down' } });
  await t.rejects(pool.run('thread', undefined), { code: 'shutting_down' });
});

t.test('owners take turns', async (t) => {
  const queue = new FairQueue<number>();
  for (let item = 0; item < 3; item++) queue.add('a', item);
  queue.add('b', 10);
  queue.add('c', 20);
  const order = [];
  for (let next = queue.take(); next !== null; next = queue.take()) order.push(next.item);
  t.strictSame(order, [0, 10, 20, 1, 2]);
  queue.add('a', 1);
  queue.add('b', 2);
  t.strictSame(queue.clear(), [1, 2]);
  t.ok(queue.isEmpty);
});

t.test('an owner has its share', async (t) => {
  const queue = new FairQueue<number>(1);
  for (let item = 0; item < 3; item++) queue.add('a', item);
  queue.add('b', 10);
  t.match(queue.take(), { owner: 'a', item: 0 });
  t.match(queue.take(), { owner: 'b', item: 10 });
  t.equal(queue.take(), null);
  queue.release('a');
  t.match(queue.take(), { owner: 'a', item: 1 });
});
