/** Number of records that one page scans. */
import t from 'tap';
import { ulid } from 'ulid';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import type { StoreContext } from './context.js';
import { type Listing, MOST_LOOKED_AT, readPage } from './listing.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

/** Creates two indexes with the even and the odd of `count` numbers, as ids that sort like them. */
async function numbers(count: number) {
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  const prefix = ulid();
  const indexes = ['even', 'odd'].map((name) => `${prefix}:${name}`) as [string, string];
  for (let n = 0; n < count; n += 1)
    await redis.zadd(indexes[n % 2] as string, 0, `n_${String(n).padStart(6, '0')}`);
  return { context: { redis } as unknown as StoreContext, indexes };
}

t.test('a page ends after a bounded number of records, and the next one continues after them', async (t) => {
  const { context, indexes } = await numbers(2500);
  let lookedAt = 0;
  const load = async (ids: string[]) => {
    lookedAt += ids.length;
    return ids.map((id) => Number(id.slice(2)));
  };
  const matches = (n: number) => n % 900 === 0;
  const found: number[] = [];
  const pages: number[] = [];
  for (let after: string | undefined; ; ) {
    lookedAt = 0;
    const page = await readPage(context, {
      indexes,
      page: { limit: 2, ...(after && { after }) },
      load,
      matches,
    });
    t.ok(lookedAt <= MOST_LOOKED_AT + 101, `${lookedAt} records`);
    found.push(...page.data);
    pages.push(page.data.length);
    if (page.next_cursor === null) break;
    after = page.next_cursor;
  }
  t.same(found, [1800, 900, 0]);
  t.same(pages, [1, 1, 1], 'none is full, and none is the last for that');
});

t.test('several indexes are one list, within bounds', async (t) => {
  const { context, indexes } = await numbers(40);
  const list = (listing: Pick<Listing<string>, 'page' | 'range'>) =>
    readPage(context, { indexes, load: async (ids) => ids, ...listing });
  const all: string[] = [];
  for (let after: string | undefined; ; ) {
    const { data, next_cursor } = await list({ page: { limit: 7, ...(after && { after }) } });
    all.push(...data);
    if (next_cursor === null) break;
    after = next_cursor;
  }
  t.same(
    all,
    Array.from({ length: 40 }, (_, n) => `n_${String(39 - n).padStart(6, '0')}`),
  );
  t.same((await list({ page: { id_prefix: 'n_00003', limit: 3 } })).data, [
    'n_000039',
    'n_000038',
    'n_000037',
  ]);
  t.same((await list({ page: { id_prefix: 'n_00003', after: 'n_000031' } })).data, ['n_000030']);
  t.same((await list({ page: {}, range: { from: 'n_000010', to: 'n_000012' } })).data, [
    'n_000011',
    'n_000010',
  ]);
  t.same((await list({ page: { id_prefix: 'n_1' } })).data, []);
  t.same((await list({ page: { limit: 40 } })).next_cursor, null);
});
