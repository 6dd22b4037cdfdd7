import t from 'tap';
import { PerPool } from './per-pool.js';

t.test('of the unused parts, the most recently used stay open', async (t) => {
  const told: string[] = [];
  const parts = new PerPool(
    {
      open: (pool) => {
        told.push(`open ${pool}`);
        return pool;
      },
      close: async (part) => told.push(`close ${part}`),
    },
    2,
  );
  const use = (pool: string) => parts.use(pool, async (part) => t.equal(part, pool));
  for (const pool of ['a', 'b', 'a', 'c', 'b']) await use(pool);
  t.strictSame(told, ['open a', 'open b', 'open c', 'close b', 'open b', 'close a']);
  told.length = 0;
  let finish = () => {};
  const work = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const working = parts.use('c', () => work);
  for (const pool of ['d', 'e']) await use(pool);
  t.strictSame(told, ['open d', 'close b', 'open e', 'close d'], 'a part in use is not closed');
  finish();
  await working;
  await parts.close();
  t.strictSame(told.slice(4).sort(), ['close c', 'close e']);
});

t.test('errors are thrown, and the part is used again', async (t) => {
  let opened = 0;
  const parts = new PerPool(
    { open: () => ++opened, close: () => Promise.reject(new Error('closed before')) },
    0,
  );
  await t.rejects(
    parts.use('a', () => Promise.reject(new Error('no'))),
    { message: 'no' },
  );
  t.equal(await parts.use('a', async (part) => part), 2, 'nothing was kept');
  await parts.close();
});
