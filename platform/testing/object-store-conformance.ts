/** Conformance tests of the object store port for every implementation. */
import type { Test } from 'tap';
import type { ByteRange, ObjectStore } from '../object-store/common/port.js';
import { CREATE_ONLY_MAX_BYTES } from '../object-store/index.js';
import { collect, cut, digest, names, pattern, pieces, rejectsWith } from './object-store-checks.js';

interface ConformanceSubject {
  /** Opens an empty store. */
  open(): Promise<ObjectStore>;
  /** Length that the implementation does not store in one piece. */
  longBytes: number;
}

/** Runs the whole suite as subtests of `t`. */
export async function objectStoreConformance(t: Test, subject: ConformanceSubject): Promise<void> {
  await t.test('whole objects', (t) => wholeObjects(t, subject));
  await t.test('versions', (t) => versions(t, subject));
  await t.test('streams of any length', (t) => streams(t, subject));
  await t.test('ranges', (t) => ranges(t, subject));
  await t.test('create-only', (t) => createOnly(t, subject));
  await t.test('listing', (t) => listing(t, subject));
  await t.test('deleting', (t) => deleting(t, subject));
  await t.test('keys', (t) => keys(t, subject));
  await t.test('a body that fails', (t) => failingBody(t, subject));
  await t.test('closing', (t) => closing(t, subject));
}

async function wholeObjects(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  await store.check();
  t.equal(await store.head('a/b'), null);
  await rejectsWith(t, store.get('a/b'), 'object_not_found');
  await rejectsWith(t, store.stream('a/b'), 'object_not_found');

  t.same(await store.put('a/b', Buffer.from('first'), { contentType: 'text/plain' }), { bytes: 5 });
  t.equal(String(await store.get('a/b')), 'first');
  const before = Date.now();
  t.same(await store.put('a/b', Buffer.from('second, longer')), { bytes: 14 });
  t.equal(String(await store.get('a/b')), 'second, longer', 'replaced as a whole');
  const info = await store.head('a/b');
  t.match(info, { key: 'a/b', bytes: 14 });
  const age = Math.abs(Date.parse(info?.last_modified ?? '') - before);
  t.ok(age < 60_000, 'the time is that of the last put');

  t.equal(await store.abandonUploads('a/'), 0, 'a finished put is not an abandoned upload');
  t.equal(String(await store.get('a/b')), 'second, longer');

  t.same(await store.put('empty', new Uint8Array()), { bytes: 0 });
  t.equal((await store.get('empty')).length, 0);
  t.match(await store.head('empty'), { bytes: 0 });
  await store.close();
}

async function versions(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  const etag = async () => {
    const headed = (await store.head('v'))?.etag;
    for await (const listed of store.list('v')) t.equal(listed.etag, headed, 'head and list agree');
    t.match(headed, /^[^"]+$/, 'without quotes');
    return headed;
  };
  let before: string | undefined;
  for (const content of ['first', 'other', 'third'].map((text) => Buffer.from(text))) {
    await store.put('v', content);
    const now = await etag();
    t.not(now, before, 'another version of the same size, immediately');
    before = now;
  }
  await store.get('v');
  await rejectsWith(t, store.put('v', Buffer.from('fifth'), { createOnly: true }), 'precondition_failed');
  await store.put('w', Buffer.from('beside it'));
  t.equal(await etag(), before, 'other keys are unaffected');
  await store.put('v', pieces(pattern(subject.longBytes * 2), 70_001));
  t.not(await etag(), before, 'for a version not stored in one piece');
  await store.close();
}

async function streams(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  // Pieces of odd sizes, empty ones among them: their borders must not matter.
  for (const bytes of [0, 1, 100_003, subject.longBytes, subject.longBytes * 2 + 12_345]) {
    const content = pattern(bytes);
    t.same(await store.put('long', pieces(content, 70_001)), { bytes }, `${bytes} bytes as a stream`);
    t.equal((await store.head('long'))?.bytes, bytes);
    t.equal(digest(await store.get('long')), digest(content));
    t.equal(digest(await collect(await store.stream('long'))), digest(content));
    await store.put('long', content);
    t.equal(digest(await store.get('long')), digest(content), `${bytes} bytes at once`);
    t.same(await store.put('long', cut(content, 70_001)), { bytes }, `${bytes} bytes in many pieces`);
    t.equal(digest(await store.get('long')), digest(content));
  }
  await store.put('long', cut(pattern(5_000), 1));
  t.equal(
    digest(await store.get('long')),
    digest(pattern(5_000)),
    'more pieces than one system call accepts',
  );
  await store.put('long', pattern(subject.longBytes * 2 + 12_345));

  const reader = await store.stream('long');
  for await (const piece of reader) {
    t.ok(piece.length > 0);
    break;
  }
  t.equal((await store.get('long')).length, subject.longBytes * 2 + 12_345, 'a reader may stop early');
  await store.close();
}

async function ranges(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  const content = pattern(100_000);
  await store.put('r', content);
  for (const [begin, end] of [
    [0, 1],
    [0, 100_000],
    [99_999, 100_000],
    [4095, 70_000],
    [5, 5],
    [100_000, 100_000],
  ]) {
    const range = { begin, end } as ByteRange;
    t.same(await store.get('r', range), content.subarray(begin, end), `[${begin}, ${end})`);
    t.same(await collect(await store.stream('r', range)), content.subarray(begin, end));
  }
  await readsIntoMemory(t, store, content);
  await rejectsWith(t, store.get('r', { begin: 99_999, end: 100_001 }), 'invalid_range');
  await rejectsWith(t, store.get('r', { begin: 200_000, end: 200_001 }), 'invalid_range');
  await rejectsWith(t, store.get('r', { begin: 100_001, end: 100_001 }), 'invalid_range');
  await rejectsWith(t, store.get('r', { begin: 2, end: 1 }), 'invalid_argument');
  await rejectsWith(t, store.get('r', { begin: -1, end: 1 }), 'invalid_argument');
  await rejectsWith(t, store.get('r', { begin: 0, end: Number.NaN }), 'invalid_argument');
  await rejectsWith(t, store.get('none', { begin: 0, end: 0 }), 'object_not_found');
  await rejectsWith(t, store.get('none', { begin: 0, end: 1 }), 'object_not_found');
  await store.close();
}

async function readsIntoMemory(t: Test, store: ObjectStore, content: Buffer): Promise<void> {
  const memory = Buffer.alloc(50_000, 0xee);
  const range = { begin: 10, end: 40_010 };
  const bytes = await store.get('r', range, memory);
  t.ok(bytes.equals(content.subarray(10, 40_010)));
  t.equal(bytes.buffer, memory.buffer, 'the result lies in the given memory');
  t.equal(bytes.byteOffset, memory.byteOffset);
  t.ok(memory.subarray(40_000).equals(Buffer.alloc(10_000, 0xee)), 'the memory after it is unchanged');
  const short = await store.get('r', range, memory.subarray(0, 39_999));
  t.ok(short.equals(content.subarray(10, 40_010)), 'memory that is too short is not used');
  t.not(short.buffer, memory.buffer);
}

async function createOnly(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  t.same(await store.put('once', pieces(pattern(10), 3), { createOnly: true }), { bytes: 10 });
  t.same(await store.put('once-too', cut(pattern(10), 3), { createOnly: true }), { bytes: 10 });
  t.same(await store.get('once-too'), pattern(10));
  await rejectsWith(t, store.put('once', Buffer.from('other'), { createOnly: true }), 'precondition_failed');
  t.same(await store.get('once'), pattern(10), 'the first one stays');
  await store.put('once', Buffer.from('replaced'));
  t.equal(String(await store.get('once')), 'replaced', 'a plain put still replaces');

  const writers = Array.from({ length: 8 }, (_, i) => `writer ${i}`);
  for (let round = 0; round < 5; round += 1) {
    const key = `race/${round}/MANIFEST.json`;
    const results = await Promise.allSettled(
      writers.map((text) => store.put(key, Buffer.from(text), { createOnly: true })),
    );
    const winners = writers.filter((_, i) => results[i]?.status === 'fulfilled');
    t.equal(winners.length, 1, 'a race of eight has one winner');
    t.equal(String(await store.get(key)), winners[0], 'whose bytes are stored');
    const losers = results.filter((result) => result.status === 'rejected');
    t.ok(losers.every((loser) => loser.reason.code === 'precondition_failed'));
  }

  const tooLong = new Uint8Array(CREATE_ONLY_MAX_BYTES + 1);
  await rejectsWith(t, store.put('long', tooLong, { createOnly: true }), 'invalid_argument');
  t.equal(await store.head('long'), null);
  await store.close();
}

async function listing(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  t.same(await names(store, ''), [], 'empty at first');
  const all = ['a', 'b-1', 'b/1', 'b/1x', 'b/2/c', 'b0', 'jobs/x/1', 'jobs/x/10', 'jobs/x/9', 'z.json'];
  for (const key of [...all].reverse()) await store.put(key, Buffer.from(key));
  t.same(await names(store, ''), all, 'all keys, in order of the keys and not of directories');
  t.same(await names(store, 'b'), ['b-1', 'b/1', 'b/1x', 'b/2/c', 'b0']);
  t.same(await names(store, 'b/'), ['b/1', 'b/1x', 'b/2/c']);
  t.same(await names(store, 'b/1'), ['b/1', 'b/1x'], 'a prefix may end inside a name');
  t.same(await names(store, 'jobs/x/1'), ['jobs/x/1', 'jobs/x/10']);
  t.same(await names(store, 'none/'), []);
  t.same(await names(store, 'a/'), [], 'an object is not a directory');
  for await (const info of store.list('b/2/')) t.match(info, { key: 'b/2/c', bytes: 5 });

  const many = Array.from({ length: 1010 }, (_, i) => `many/${String(i).padStart(5, '0')}`);
  for (let i = 0; i < many.length; i += 50) {
    await Promise.all(many.slice(i, i + 50).map((key) => store.put(key, Buffer.from('x'))));
  }
  t.same(await names(store, 'many/'), many, 'more than one page');
  await store.delete(many);
  t.same(await names(store, 'many/'), []);
  await store.close();
}

async function deleting(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  for (const key of ['d/1', 'd/2', 'd/sub/3', 'keep']) await store.put(key, Buffer.from(key));
  await store.delete(['d/1', 'd/sub/3', 'd/never-was', 'nowhere/at/all']);
  t.same(await names(store, ''), ['d/2', 'keep']);
  await store.delete(['d/1']);
  await store.delete([]);
  await store.put('d/sub/3', Buffer.from('again'));
  t.equal(String(await store.get('d/sub/3')), 'again');

  // A delete may remove the directory that a put of a neighbour is about to use.
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => [
      store.put(`churn/dir/${i}`, Buffer.from('x')).then(() => store.delete([`churn/dir/${i}`])),
    ]).flat(),
  );
  t.same(await names(store, 'churn/'), []);
  await store.close();
}

async function keys(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  const bad = [
    '',
    '/',
    '/a',
    'a/',
    'a//b',
    '.',
    '..',
    'a/../b',
    '../a',
    'a/./b',
    'a\\b',
    'a\0b',
    'ä',
    'a b',
    '.tmp/x',
  ];
  for (const key of [...bad, 'x'.repeat(701)]) {
    const label = JSON.stringify(key.slice(0, 20));
    await rejectsWith(t, store.put(key, Buffer.from('x')), 'invalid_key', label);
    await rejectsWith(t, store.get(key), 'invalid_key', label);
    await rejectsWith(t, store.head(key), 'invalid_key', label);
    await rejectsWith(t, store.delete(['fine', key]), 'invalid_key', label);
  }
  for (const prefix of ['../', '/', 'a/../', './', '.tmp/', 'a//', 'ä']) {
    await rejectsWith(t, names(store, prefix), 'invalid_key', JSON.stringify(prefix));
  }
  t.same(await names(store, ''), []);
  const good = ['a', 'A.b_c=d-e', '0/1/2/3/4/5/6/7', `${'x'.repeat(200)}/${'y'.repeat(200)}`, 'a..b', '-'];
  for (const key of good.slice(1)) {
    await store.put(key, Buffer.from(key));
    t.equal(String(await store.get(key)), key);
  }
  await store.close();
}

async function failingBody(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  const mine = new Error('the producer broke');
  let freed = 0;
  async function* broken(bytes: number): AsyncGenerator<Uint8Array> {
    try {
      for (let sent = 0; sent < bytes; sent += 100_000) yield pattern(100_000);
      throw mine;
    } finally {
      freed += 1;
    }
  }
  await store.put('kept', Buffer.from('before'));
  for (const bytes of [0, 100_000, subject.longBytes * 2]) {
    for (const key of ['kept', 'fresh']) {
      const error = await store.put(key, broken(bytes)).catch((caught: unknown) => caught);
      t.equal(error, mine, `${bytes} bytes, then the producer's own error, unchanged`);
    }
    const error = await store
      .put('once', broken(bytes), { createOnly: true })
      .catch((caught: unknown) => caught);
    t.equal(error, mine);
  }
  t.equal(freed, 9, 'every producer could clean up');
  t.equal(String(await store.get('kept')), 'before');
  t.same(await names(store, ''), ['kept'], 'no partial object is visible');
  await store.close();
}

async function closing(t: Test, subject: ConformanceSubject): Promise<void> {
  const store = await subject.open();
  t.match(store.url, /^(file|s3):\/\//);
  await store.close();
  await store.close();
  await rejectsWith(t, store.get('a'), 'invalid_argument');
  await rejectsWith(t, store.put('a', Buffer.from('a')), 'invalid_argument');
  await rejectsWith(t, store.check(), 'invalid_argument');
}
