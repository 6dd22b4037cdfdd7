import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { forEachParallel } from './parallel.js';

async function* numbers(count: number, onReturn: () => void = () => undefined) {
  try {
    for (let i = 0; i < count; i += 1) yield i;
  } finally {
    onReturn();
  }
}

t.test('every item once, indexes in order of arrival, never more than the limit', async (t) => {
  for (const limit of [1, 3, 50]) {
    const seen: number[] = [];
    let running = 0;
    let most = 0;
    await forEachParallel(numbers(20), limit, async (item, index) => {
      t.equal(item, index);
      running += 1;
      most = Math.max(most, running);
      await sleep(item % 3);
      running -= 1;
      seen.push(item);
    });
    t.same(
      seen.sort((a, b) => a - b),
      [...Array(20).keys()],
    );
    t.equal(most, Math.min(limit, 20));
  }
});

t.test('the first failure is reported after everything has ended', async (t) => {
  let ended = 0;
  let cut = 0;
  let freed = 0;
  const items = numbers(100, () => {
    freed += 1;
  });
  const work = async (item: number) => {
    await sleep(item === 2 ? 5 : 20);
    ended += 1;
    if (item >= 2) throw new Error(`item ${item}`);
  };
  await t.rejects(
    forEachParallel(items, 4, work, () => (cut += 1)),
    { message: 'item 2' },
  );
  t.equal(ended, 4, 'nothing new was started, and all started work has ended');
  t.equal(cut, 1);
  t.equal(freed, 1, 'the source is closed');
});

t.test('an error while closing the source does not replace the first failure', async (t) => {
  const items = numbers(10, () => {
    throw new Error('end');
  });
  const work = async () => {
    throw new Error('work');
  };
  await t.rejects(forEachParallel(items, 2, work), { message: 'work' });
});

t.test('a source that fails', async (t) => {
  async function* broken() {
    yield 1;
    throw new Error('source');
  }
  await t.rejects(
    forEachParallel(broken(), 3, async () => undefined),
    { message: 'source' },
  );
});
