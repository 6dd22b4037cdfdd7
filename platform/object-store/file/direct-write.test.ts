import { constants } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { pattern, rejectsWith } from '../../testing/object-store-checks.js';
import { type FileHandle, type FileSystem, nodeFileSystem } from './file-system.js';
import { FileStore } from './store.js';

/** Longer than one call of either kind, with an incomplete last block. */
const LONG_BYTES = 40 * 1024 * 1024 + 1234;
const HEAD = pattern(4096);

// TypeScript's library types without the DOM have no WebAssembly.
declare const WebAssembly: { Memory: new (size: { initial: number }) => { buffer: ArrayBuffer } };

/** Allocates WebAssembly memory, the only JavaScript memory that surely begins at a page. */
function pageAligned(bytes: number): Buffer {
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / 65_536) });
  const buffer = Buffer.from(memory.buffer, 0, bytes);
  pattern(bytes).copy(buffer);
  return buffer;
}

const CONTENT = pageAligned(LONG_BYTES);
const WHOLE = Buffer.concat([HEAD, CONTENT]);

interface Direct {
  fileSystem: FileSystem;
  /** Bytes of direct writes. */
  bytes(): number;
}

/** Observes direct writes, and may replace one. */
function watched(instead?: (write: FileHandle['write']) => FileHandle['write'] | null): Direct {
  let bytes = 0;
  const open = async (...args: Parameters<FileSystem['open']>) => {
    const file = await nodeFileSystem.open(...args);
    if (typeof args[1] !== 'number' || (args[1] & constants.O_DIRECT) === 0) return file;
    const plain = file.write.bind(file) as FileHandle['write'];
    const write = instead?.(plain) ?? plain;
    const counted = async (...rest: [Uint8Array, number, number, number]) => {
      const done = await write(...rest);
      bytes += done.bytesWritten;
      return done;
    };
    return Object.assign(file, { write: counted });
  };
  return { fileSystem: { ...nodeFileSystem, open: open as FileSystem['open'] }, bytes: () => bytes };
}

/** Returns whether the file system supports direct writes. */
async function isPossible(path: string): Promise<boolean> {
  const { O_CREAT, O_WRONLY, O_DIRECT } = constants;
  const file = await nodeFileSystem.open(path, O_CREAT | O_WRONLY | O_DIRECT).catch(() => null);
  const written = await file?.write(CONTENT, 0, 4096, 0).catch(() => null);
  await file?.close();
  return written?.bytesWritten === 4096;
}

const failWith = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }));

async function storeOn(t: Test, fileSystem: FileSystem) {
  const root = join(t.testdir(), 'objects');
  await mkdir(root);
  return FileStore.open(root, { fileSystem });
}

t.test('long pieces bypass the page cache, their unaligned ends do not', async (t) => {
  const direct = watched();
  const store = await storeOn(t, direct.fileSystem);
  // Adjacent in memory, like the slices of a snapshot: one long piece.
  const cuts = [0, 1000, 1000, 20_000_001, 30_000_000, LONG_BYTES];
  const slices = cuts.slice(1).map((end, i) => CONTENT.subarray(cuts[i], end));
  t.same(await store.put('a', [HEAD, ...slices]), { bytes: WHOLE.length });
  t.ok((await store.get('a')).equals(WHOLE));
  const possible = await isPossible(join(t.testdirName, 'trial'));
  t.equal(direct.bytes(), possible ? LONG_BYTES - (LONG_BYTES % 4096) : 0);
});

t.test('without support the bytes are written normally', async (t) => {
  for (const code of ['EINVAL', 'EOPNOTSUPP', 'ENOTSUP']) {
    const { fileSystem } = watched(() => failWith(code) as FileHandle['write']);
    const store = await storeOn(t, fileSystem);
    t.same(await store.put('a', [HEAD, CONTENT]), { bytes: WHOLE.length }, `${code} of the write`);
    t.ok((await store.get('a')).equals(WHOLE));
  }
  const open = (...args: Parameters<FileSystem['open']>) =>
    typeof args[1] === 'number' ? failWith('EINVAL')() : nodeFileSystem.open(...args);
  const store = await storeOn(t, { ...nodeFileSystem, open: open as FileSystem['open'] });
  t.same(await store.put('a', [HEAD, CONTENT]), { bytes: WHOLE.length }, 'EINVAL of the open');
  t.ok((await store.get('a')).equals(WHOLE));
});

t.test('a refusal after some calls', async (t) => {
  let calls = 0;
  const { fileSystem } = watched((write) => {
    const third = (...args: [Uint8Array, number, number, number]) =>
      ++calls === 3 ? failWith('EINVAL')() : write(...args);
    return third as FileHandle['write'];
  });
  const store = await storeOn(t, fileSystem);
  t.same(await store.put('a', [HEAD, CONTENT]), { bytes: WHOLE.length });
  t.ok((await store.get('a')).equals(WHOLE));
});

t.test('unaligned memory or position', async (t) => {
  const direct = watched();
  const store = await storeOn(t, direct.fileSystem);
  const odd = CONTENT.subarray(3);
  t.same(await store.put('memory', [HEAD, odd]), { bytes: WHOLE.length - 3 });
  t.ok((await store.get('memory')).equals(Buffer.concat([HEAD, odd])));
  t.equal(direct.bytes(), 0);
  const before = [HEAD.subarray(1), CONTENT];
  t.same(await store.put('file', before), { bytes: WHOLE.length - 1 });
  t.ok((await store.get('file')).equals(Buffer.concat(before)));
  t.equal(direct.bytes(), 0);
});

t.test('a full disk, and short writes', async (t) => {
  const full = await storeOn(t, watched(() => failWith('ENOSPC') as FileHandle['write']).fileSystem);
  await rejectsWith(t, full.put('a', [HEAD, CONTENT]), 'disk_full');
  t.equal(await full.head('a'), null);
  const { fileSystem } = watched((write) => {
    const less = (bytes: Uint8Array, offset: number, length: number, position: number) =>
      write(bytes, offset, Math.min(length, 65_536), position);
    return less as FileHandle['write'];
  });
  const store = await storeOn(t, fileSystem);
  t.same(await store.put('a', [HEAD, CONTENT]), { bytes: WHOLE.length });
  t.ok((await store.get('a')).equals(WHOLE));
});
