import { execFileSync } from 'node:child_process';
import { mkdir, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { pattern, rejectsWith } from '../../testing/object-store-checks.js';
import { objectStoreConformance } from '../../testing/object-store-conformance.js';
import { openObjectStore } from '../open.js';
import { type FileSystem, nodeFileSystem } from './file-system.js';
import { FileStore } from './store.js';

let stores = 0;

function freshRoot(): string {
  stores += 1;
  return join(t.testdir({}), `store-${stores}`);
}

/** Returns a file system in which one call fails with the given code. */
function failing(call: keyof FileSystem, code: string): FileSystem {
  const fail = () => Promise.reject(Object.assign(new Error(`${code}: injected`), { code }));
  return { ...nodeFileSystem, [call]: fail };
}

/** Returns a file system on which all files together may have `room` bytes. */
function withRoomFor(room: number): FileSystem {
  let left = room;
  const open = async (...args: Parameters<FileSystem['open']>) => {
    const file = await nodeFileSystem.open(...args);
    const write = file.write.bind(file) as (...rest: unknown[]) => Promise<unknown>;
    const limited = async (bytes: Uint8Array, offset: number, length: number, position: number) => {
      if (left === 0) throw Object.assign(new Error('ENOSPC: injected'), { code: 'ENOSPC' });
      // As the kernel does: it writes what fits, and the next call fails.
      const fits = Math.min(left, length);
      left -= fits;
      return write(bytes, offset, fits, position);
    };
    return Object.assign(file, { write: limited });
  };
  return { ...nodeFileSystem, open: open as FileSystem['open'] };
}

t.test('conformance', (t) =>
  objectStoreConformance(t, {
    open: () => FileStore.open(freshRoot(), { create: true }),
    longBytes: 3_000_000,
  }),
);

t.test('opened by URL', async (t) => {
  const root = freshRoot();
  const url = pathToFileURL(root).href;
  await rejectsWith(t, openObjectStore(url), 'bucket_not_found');
  await t.rejects(openObjectStore(url), { message: /does not exist: .*; make it/ });
  const store = await openObjectStore(url, { create: true });
  await store.put('a', Buffer.from('1'));
  t.equal(store.url, url);
  t.equal(String(await (await openObjectStore(url)).get('a')), '1', 'another process finds it');
  for (const bad of ['http://x/y', 'file://host/x', '/plain/path', 's3://Bad_Bucket/x', 's3://bucket/a b']) {
    await t.rejects(openObjectStore(bad), { code: 'invalid_configuration' }, bad);
  }
});

t.test('a root that disappeared is a missing bucket, and is never created again', async (t) => {
  const root = freshRoot();
  const store = await FileStore.open(root, { create: true });
  await store.put('a/b', Buffer.from('x'));
  await rm(root, { recursive: true });
  await rejectsWith(t, store.get('a/b'), 'bucket_not_found');
  await rejectsWith(t, store.head('a/b'), 'bucket_not_found');
  await rejectsWith(t, store.put('a/b', Buffer.from('y')), 'bucket_not_found');
  await rejectsWith(t, store.delete(['a/b']), 'bucket_not_found');
  await rejectsWith(t, store.check(), 'bucket_not_found');
  await rejectsWith(t, store.list('')[Symbol.asyncIterator]().next(), 'bucket_not_found');
  await t.rejects(readdir(root), { code: 'ENOENT' });
});

t.test('a stream closes its file when it is abandoned, also before its first piece', async (t) => {
  let opened = 0;
  const open = async (...args: Parameters<FileSystem['open']>) => {
    const file = await nodeFileSystem.open(...args);
    const close = file.close.bind(file);
    opened += 1;
    return Object.assign(file, { close: () => close().finally(() => (opened -= 1)) });
  };
  const root = freshRoot();
  await mkdir(root);
  const fileSystem = { ...nodeFileSystem, open: open as FileSystem['open'] };
  const store = await FileStore.open(root, { fileSystem });
  await store.put('a', pattern(3_000_000));
  t.equal(opened, 0);
  const never = (await store.stream('a'))[Symbol.asyncIterator]();
  t.equal(opened, 1);
  await never.return?.();
  t.equal(opened, 0);
  const early = (await store.stream('a'))[Symbol.asyncIterator]();
  t.equal((await early.next()).value.length > 0, true);
  await early.return?.();
  t.equal(opened, 0);
});

t.test('two versions with equal size and time have different etags', async (t) => {
  const root = freshRoot();
  const store = await FileStore.open(root, { create: true });
  const write = async (content: string) => {
    await store.put('a', Buffer.from(content));
    await utimes(join(root, 'a'), 1, 1);
    return store.head('a');
  };
  const [first, other] = [await write('first'), await write('other')];
  t.equal(other?.last_modified, first?.last_modified);
  t.not(other?.etag, first?.etag);
  await utimes(join(root, 'a'), 2, 2);
  t.not((await store.head('a'))?.etag, other?.etag, 'also after an inode was reused');
});

t.test('deleting an object or its directory during a put does no harm', async (t) => {
  const root = freshRoot();
  const store = await FileStore.open(root, { create: true });
  const during = async (call: 'rename' | 'realpath', happens: () => Promise<unknown>) => {
    let isFirst = true;
    const wrapped = async (...args: unknown[]) => {
      const original = nodeFileSystem[call] as (...args: unknown[]) => Promise<unknown>;
      const before = isFirst && call === 'realpath';
      const after = isFirst && call === 'rename';
      isFirst = false;
      if (before) await happens();
      const result = await original(...args);
      if (after) await happens();
      return result;
    };
    Object.assign(store, { fs: { ...nodeFileSystem, [call]: wrapped } });
    const { bytes } = await store.put('a/b/c', pattern(10));
    Object.assign(store, { fs: nodeFileSystem });
    return bytes;
  };
  t.equal(await during('rename', () => store.delete(['a/b/c'])), 10, 'it existed, and is deleted');
  t.equal(await store.head('a/b/c'), null);
  t.equal(await during('realpath', () => rm(join(root, 'a'), { recursive: true })), 10);
  t.same(await store.get('a/b/c'), pattern(10));
  await rejectsWith(
    t,
    during('rename', () => rm(root, { recursive: true })),
    'bucket_not_found',
  );
});

t.test('a full disk', async (t) => {
  const root = freshRoot();
  await mkdir(root);
  const store = await FileStore.open(root, { fileSystem: withRoomFor(250_000) });
  await store.put('small', pattern(100_000));
  const error = await rejectsWith(t, store.put('large', pattern(200_000)), 'disk_full');
  t.equal(error?.retryable, true);
  t.match(error?.hint, /Free space/);
  await rejectsWith(t, store.put('large', pattern(1), { createOnly: true }), 'disk_full');
  await rejectsWith(t, store.put('small', pattern(1)), 'disk_full', 'replacing fails as well');
  t.same(await store.get('small'), pattern(100_000), 'and loses nothing');
  t.equal(await store.head('large'), null);
  t.same(await readdir(join(root, '.tmp')), [], 'no temporary file is left');
  for (const call of ['open', 'mkdir', 'rename'] as const) {
    const other = await FileStore.open(freshRoot(), { create: true });
    Object.assign(other, { fs: failing(call, 'ENOSPC') });
    await rejectsWith(t, other.put('a/b', pattern(1)), 'disk_full', `${call} fails`);
  }
});

t.test('bytes lost by the disk while further ones arrive', async (t) => {
  let flushes = 0;
  // As on Linux: the lost write is reported once, and the final sync succeeds.
  const open = async (...args: Parameters<FileSystem['open']>) => {
    const datasync = async () => {
      flushes += 1;
      if (flushes === 1) throw Object.assign(new Error('EIO: injected'), { code: 'EIO' });
    };
    return Object.assign(await nodeFileSystem.open(...args), { datasync });
  };
  const root = freshRoot();
  const fileSystem = { ...nodeFileSystem, open: open as FileSystem['open'] };
  const store = await FileStore.open(root, { create: true, fileSystem });
  const megabyte = pattern(1_000_000);
  async function* many() {
    for (let i = 0; i < 100; i++) yield megabyte;
  }
  await rejectsWith(t, store.put('large', many()), 'object_store_unavailable');
  t.equal(flushes, 1, 'it is not repeated: it could succeed');
  t.equal(await store.head('large'), null);
  t.same(await store.put('large', many()), { bytes: 100_000_000 });
  t.ok(flushes > 1, 'bytes were flushed before the end');
  await store.delete(['large']);
});

t.test('a full disk, a real one', async (t) => {
  const root = freshRoot();
  await mkdir(root);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', root], { stdio: 'pipe' });
  } catch {
    t.pass('a file system cannot be mounted here (needs root)', { skip: true });
    return;
  }
  t.teardown(() => execFileSync('umount', [root]));
  const store = await FileStore.open(root);
  await store.put('small', pattern(100_000));
  await rejectsWith(t, store.put('large', pattern(2_000_000)), 'disk_full');
  t.same(await store.get('small'), pattern(100_000));
  await store.put('another', pattern(500_000));
  t.equal((await store.head('another'))?.bytes, 500_000, 'the failed put has freed its space');
});

t.test('no permission', async (t) => {
  for (const code of ['EACCES', 'EPERM', 'EROFS']) {
    const store = await FileStore.open(freshRoot(), { create: true });
    await store.put('a', pattern(1));
    Object.assign(store, { fs: failing('open', code) });
    await rejectsWith(t, store.put('b', pattern(1)), 'access_denied', code);
    await rejectsWith(t, store.get('a'), 'access_denied', code);
    await rejectsWith(t, store.check(), 'access_denied', code);
  }
  const store = await FileStore.open(freshRoot(), { create: true });
  Object.assign(store, { fs: failing('open', 'EIO') });
  await rejectsWith(t, store.put('b', pattern(1)), 'object_store_unavailable', 'anything else');
});

t.test('no key leads out of the root', async (t) => {
  const outside = freshRoot();
  const root = freshRoot();
  await mkdir(outside);
  await writeFile(join(outside, 'secret'), 'secret');
  const store = await FileStore.open(root, { create: true });
  await symlink(outside, join(root, 'link'));
  await rejectsWith(t, store.get('link/secret'), 'access_denied');
  await rejectsWith(t, store.put('link/planted', pattern(1)), 'access_denied');
  await rejectsWith(t, store.delete(['link/secret']), 'access_denied');
  t.same(await readdir(outside), ['secret']);
  const found: string[] = [];
  for await (const { key } of store.list('')) found.push(key);
  t.same(found, [], 'a symbolic link is not listed');
});

t.test('a root behind a symbolic link is allowed', async (t) => {
  const real = freshRoot();
  await mkdir(real);
  const link = `${real}-link`;
  await symlink(real, link);
  const store = await FileStore.open(link);
  await store.put('a/b', Buffer.from('x'));
  t.equal(String(await store.get('a/b')), 'x');
});

t.test('a key below another key is refused', async (t) => {
  const store = await FileStore.open(freshRoot(), { create: true });
  await store.put('a', pattern(1));
  await rejectsWith(t, store.put('a/b', pattern(1)), 'invalid_key');
  await store.put('c/d', pattern(1));
  await rejectsWith(t, store.put('c', pattern(1)), 'invalid_key');
  t.equal(await store.head('c'), null, 'a directory is no object');
  await rejectsWith(t, store.get('c'), 'object_not_found');
});

t.test('temporary files of a crash are swept after a day', async (t) => {
  const root = freshRoot();
  await FileStore.open(root, { create: true });
  await writeFile(join(root, '.tmp', 'old'), 'x');
  await writeFile(join(root, '.tmp', 'young'), 'x');
  const twoDaysAgo = Date.now() / 1000 - 2 * 24 * 3600;
  await utimes(join(root, '.tmp', 'old'), twoDaysAgo, twoDaysAgo);
  await FileStore.open(root);
  t.same(await readdir(join(root, '.tmp')), ['young']);
});

t.test('objects are private to their owner', async (t) => {
  const root = join(t.testdir(), 'made', 'here');
  const store = await FileStore.open(root, { create: true });
  t.teardown(() => store.close());
  await store.put('a/b', Buffer.from('one'));
  await store.put('a/c', Buffer.from('two'), { createOnly: true });
  await store.put('large', Buffer.alloc(3_000_000));
  const modeOf = async (path: string) => (await stat(join(root, path))).mode & 0o777;
  for (const file of ['a/b', 'a/c', 'large']) t.equal(await modeOf(file), 0o600, file);
  for (const directory of ['.', 'a', '.tmp']) t.equal(await modeOf(directory), 0o700, directory);
});
