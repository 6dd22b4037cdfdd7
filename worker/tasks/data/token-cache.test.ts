/** Tests of the token cache: eviction never removes an entry in use. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { prepared, readTokenFile } from '../../testing/prepared.js';
import { prepareTokens, type TokenRequest } from './prepare-tokens.js';
import { CacheUse, evict, markUse, putEntry, sealOf, temporaryPath } from './token-cache.js';

const DAY_S = 24 * 3600;
const TEXT = Buffer.from('to be or not to be, that is the question. '.repeat(50));
const BYTES = 1000;

/** Creates entries of 1,000 bytes with the given ages in days. */
async function cacheOf(t: Test, days: Readonly<Record<string, number>>): Promise<string> {
  const cache = join(t.testdir(), 'cache');
  for (const [name, age] of Object.entries(days)) {
    await mkdir(join(cache, name), { recursive: true });
    await writeFile(join(cache, name, 'training'), Buffer.alloc(BYTES));
    await setAge(join(cache, name), age);
  }
  return cache;
}

async function setAge(path: string, days: number): Promise<void> {
  const at = Date.now() / 1000 - days * DAY_S;
  await utimes(path, at, at);
}

t.test('the least recently used entries are evicted until the rest fits', async (t) => {
  const cache = await cacheOf(t, { b: 2, a: 3, c: 1, d: 0.01 });
  await evict(cache, 4 * BYTES);
  t.same(await readdir(cache), ['a', 'b', 'c', 'd']);
  await evict(cache, 2 * BYTES + 1);
  t.same(await readdir(cache), ['c', 'd']);
  await evict(cache, 0);
  t.same(await readdir(cache), []);
  await evict(join(cache, 'none'), 0);
});

t.test('eviction works although the clock was set back', async (t) => {
  const cache = await cacheOf(t, { a: -1 });
  await evict(cache, 0);
  t.same(await readdir(cache), []);
});

t.test('entries unused for 30 days are removed, regardless of the size', async (t) => {
  const cache = await cacheOf(t, { old: 31, young: 29 });
  await evict(cache, 1e9);
  t.same(await readdir(cache), ['young']);
});

t.test('an entry in use stays until its use ends or becomes stale', async (t) => {
  const cache = await cacheOf(t, { a: 40, b: 3, c: 2 });
  for (const name of ['a', 'b', 'c']) {
    t.ok(await markUse(join(cache, name), 'use'));
    await setAge(join(cache, name), 40);
  }
  const use = new CacheUse();
  use.add(join(cache, 'a'), 'use');
  await evict(cache, 0);
  t.same(await readdir(cache), ['a', 'b', 'c']);
  await setAge(join(cache, 'b', 'use.use'), 0.5);
  await evict(cache, 0);
  t.same(await readdir(cache), ['a', 'c'], 'a stale mark is not renewed');
  t.ok(await use.isThere());
  await use.end();
  await use.end();
  await evict(cache, 0);
  t.same(await readdir(cache), ['c']);
  t.notOk(await markUse(join(cache, 'a'), 'use'));
  await use.end();
  t.notOk(await markUse(join(cache, 'a'), 'x'));
});

t.test('temporary directories count towards the size and are removed after a day', async (t) => {
  const cache = await cacheOf(t, { a: 1, 'b.x.tmp': 2, 'c.x.tmp': 0 });
  await evict(cache, 1e9);
  t.same(await readdir(cache), ['a', 'b.x.tmp', 'c.x.tmp'], 'its newest file counts');
  await setAge(join(cache, 'b.x.tmp', 'training'), 2);
  await evict(cache, 2 * BYTES);
  t.same(await readdir(cache), ['a', 'c.x.tmp']);
  await evict(cache, BYTES);
  t.same(await readdir(cache), ['c.x.tmp']);
});

t.test('the first of two builders wins; an incomplete entry is replaced', async (t) => {
  const cache = await cacheOf(t, {});
  const entry = join(cache, 'entry');
  const isWhole = async (directory: string) =>
    (await readFile(join(directory, 'training'), 'utf8')) !== 'half' &&
    (await readdir(directory)).length === 2;
  const make = async (text: string) => {
    const made = temporaryPath(entry, randomUUID());
    await mkdir(made, { recursive: true });
    await writeFile(join(made, 'training'), text);
    await writeFile(sealOf(made), '{}');
    await putEntry(made, entry, isWhole);
    return readFile(join(entry, 'training'), 'utf8');
  };
  t.equal(await make('one'), 'one');
  t.equal(await make('two'), 'one');
  await writeFile(join(entry, 'training'), 'half');
  // Each may replace the incomplete files; builders of one entry write the same ones.
  const texts = ['three', 'four', 'five'];
  const made = await Promise.all(texts.map(make));
  t.same(new Set([...made, ...texts]), new Set(texts));
  t.ok(await isWhole(entry));
  await rm(sealOf(entry));
  t.equal(await make('six'), 'six', 'also after an interrupted removal');
  t.same(await readdir(cache), ['entry'], 'no temporary directory is left');
});

t.test('a job keeps its data while other data is prepared and everything else is evicted', async (t) => {
  const { objects, request } = await prepared(t, { uploaded: TEXT });
  const prepare = (sequenceLength: number, changes: Partial<TokenRequest> = {}) =>
    prepareTokens(objects, {
      ...request,
      sequence_length: sequenceLength,
      attempt: randomUUID(),
      ...changes,
    });
  const first = await prepare(10);
  const name = basename(dirname(first.token_file));
  await prepare(11, { cache_bytes: 0 });
  t.ok((await readdir(request.cache_dir)).includes(name), 'it is in use');
  for (const mark of (await readdir(dirname(first.token_file))).filter((file) => file.endsWith('.use')))
    await rm(join(dirname(first.token_file), mark));
  await prepare(12, { cache_bytes: 0 });
  t.notOk((await readdir(request.cache_dir)).includes(name));
  t.same((await prepare(10)).tokens_digest, first.tokens_digest, 'rebuilt');
});

t.test('a full disk evicts unused entries before the next try', async (t) => {
  const { objects, request } = await prepared(t, { uploaded: TEXT });
  const unused = await prepareTokens(objects, request);
  await rm(join(dirname(unused.token_file), 'attempt.use'));
  const full = () => {
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  };
  await t.rejects(prepareTokens(objects, { ...request, sequence_length: 10 }, full), { code: 'ENOSPC' });
  t.same(await readdir(request.cache_dir), []);
});

t.test('concurrent builders always get complete data during continuous eviction', async (t) => {
  const { objects, request } = await prepared(t, { uploaded: TEXT });
  let ended = false;
  const evicting = Promise.all(
    [1, 2, 3].map(async () => {
      while (!ended) await evict(request.cache_dir, 0);
    }),
  );
  const digests = new Set<string>();
  let made = 0;
  const lane = async () => {
    for (let turn = 0; turn < 40; turn += 1) {
      const attempt = randomUUID();
      const { token_file, tokens_digest } = await prepareTokens(objects, { ...request, attempt }, () => {
        made += 1;
      });
      digests.add(tokens_digest);
      t.equal((await readTokenFile(token_file)).tokens.length, TEXT.length);
      const use = new CacheUse();
      use.add(dirname(token_file), attempt);
      t.ok(await use.isThere());
      await use.end();
    }
  };
  await Promise.all([lane(), lane(), lane(), lane()]);
  ended = true;
  await evicting;
  t.equal(digests.size, 1);
  t.ok(made > 1, 'it was evicted in between');
  await evict(request.cache_dir, 0);
  t.same(await readdir(request.cache_dir), []);
});

t.test('open files outlast their entry', async (t) => {
  const cache = await cacheOf(t, { a: 1 });
  const file = await open(join(cache, 'a', 'training'));
  t.teardown(() => file.close());
  await evict(cache, 0);
  await t.rejects(stat(join(cache, 'a')), { code: 'ENOENT' });
  t.equal((await file.readFile()).length, BYTES);
});
