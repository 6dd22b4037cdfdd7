import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { collect, memorySource } from '../testing/byte-source.js';
import { readTorchFile } from './read.js';
import { type NewEntry, zipArchive } from './zip-write.js';

const GOLDEN = join(projectRoot(), 'formats/torch-file/golden');
const TORCH = readFileSync(join(GOLDEN, 'dict.pt'));
const read = (bytes: Buffer) => readTorchFile(memorySource(bytes));

const entry = (name: string, content: string | Buffer): NewEntry => {
  const bytes = Buffer.from(content);
  return { name, bytes: bytes.length, content: [bytes] };
};
const PICKLE = Buffer.from('\x80\x02N.', 'latin1');
const archive = (...more: NewEntry[]) =>
  collect(zipArchive([entry('a/data.pkl', PICKLE), ...more, entry('a/version', '3\n')]));

/** Returns the offset of an entry in the directory. */
function central(bytes: Buffer, name: string): number {
  const at = bytes.lastIndexOf(name);
  return at - 46;
}

/** Returns a copy with one change. */
function changed(bytes: Buffer, change: (copy: Buffer) => void): Buffer {
  const copy = Buffer.from(bytes);
  change(copy);
  return copy;
}

t.test('a written archive can be read', async (t) => {
  t.equal((await read(await archive())).value, null);
});

t.test('every flipped or missing byte is detected', async (t) => {
  const { value } = await read(TORCH);
  const result = (bytes: Buffer) => read(bytes).catch((error: { code?: string }) => `${error.code}`);
  // One assertion for all positions: an assertion takes longer than a read.
  const wrong: unknown[] = [];
  for (let at = 0; at < TORCH.length; at++) {
    const flipped = changed(TORCH, (copy) => copy.writeUInt8(copy.readUInt8(at) ^ 0x10, at));
    const found = await result(flipped);
    // Times, versions and padding have no meaning; other accepted changes must keep the content.
    const isExpected =
      typeof found === 'object'
        ? isDeepStrictEqual(found.value, value)
        : /^torch_file_(invalid|unsafe)$/.test(found);
    if (!isExpected) wrong.push({ flipped: at, found });
  }
  for (let bytes = 0; bytes < TORCH.length; bytes++) {
    const found = await result(TORCH.subarray(0, bytes));
    if (found !== 'torch_file_invalid') wrong.push({ bytes, found });
  }
  t.strictSame(wrong, []);
});

t.test('an archive that is not a tensor file', async (t) => {
  const cases: [string, Buffer, RegExp][] = [
    ['nothing', Buffer.alloc(0), /only 0 bytes/],
    ['no entries', await collect(zipArchive([])), /without entries/],
    ['no version', await collect(zipArchive([entry('a/data.pkl', PICKLE)])), /version "none"/],
    [
      'another version',
      await collect(zipArchive([entry('a/data.pkl', PICKLE), entry('a/version', '11\n')])),
      /version "11"/,
    ],
    ['no pickle', await collect(zipArchive([entry('a/version', '3\n')])), /has no a\/data.pkl/],
    ['another byte order', await archive(entry('a/byteorder', 'big')), /byte order is "big"/],
    [
      'an entry twice',
      await archive(entry('a/data/0', 'x'), entry('a/data/0', 'y')),
      /entry "a\/data\/0" twice/,
    ],
    ['an entry elsewhere', await archive(entry('b/data/0', 'x')), /not in the folder "a"/],
  ];
  for (const [name, bytes, message] of cases)
    await t.rejects(read(bytes), { code: 'torch_file_invalid', message }, name);
  const huge = await collect(
    zipArchive([entry('a/data.pkl', Buffer.alloc(17 << 20)), entry('a/version', '3\n')]),
  );
  await t.rejects(readTorchFile(memorySource(huge, 'huge.pt', 1 << 20)), {
    code: 'torch_file_invalid',
    message: /a pickle of 17825792 bytes; at most/,
  });
});

t.test('inconsistent archives', async (t) => {
  const whole = await archive(entry('a/data/0', Buffer.alloc(100, 7)));
  const data = central(whole, 'a/data/0');
  const version = central(whole, 'a/version');
  const end = whole.length - 22;
  const cases: [string, Buffer, RegExp][] = [
    ['compressed', changed(whole, (c) => c.writeUInt16LE(8, data + 10)), /is compressed/],
    ['encrypted', changed(whole, (c) => c.writeUInt16LE(0x0809, data + 8)), /encrypted/],
    [
      'a size below the data',
      changed(whole, (c) => {
        c.writeUInt32LE(99, data + 20);
        c.writeUInt32LE(99, data + 24);
      }),
      /has 99 bytes, and 17 more/,
    ],
    [
      'a size above the data',
      changed(whole, (c) => {
        c.writeUInt32LE(9999, data + 20);
        c.writeUInt32LE(9999, data + 24);
      }),
      /has 9999 bytes/,
    ],
    [
      'an excessive size',
      changed(whole, (c) => {
        c.writeUInt32LE(0xfffffffe, data + 20);
        c.writeUInt32LE(0xfffffffe, data + 24);
      }),
      /has 4294967294 bytes/,
    ],
    [
      'a bomb: small stored, large when opened',
      changed(whole, (c) => c.writeUInt32LE(0xfffffffe, data + 24)),
      /has two sizes/,
    ],
    [
      'two entries in one place',
      changed(whole, (c) => c.writeUInt32LE(c.readUInt32LE(data + 42), version + 42)),
      /has 100 bytes, and -/,
    ],
    [
      'an entry inside another',
      changed(whole, (c) => c.writeUInt32LE(c.readUInt32LE(data + 42) + 64, version + 42)),
      /has 100 bytes, and -/,
    ],
    ['another checksum', changed(whole, (c) => c.writeUInt32LE(1, data + 16)), /does not match its checksum/],
    [
      'a count too small',
      changed(whole, (c) => {
        c.writeUInt16LE(2, end + 8);
        c.writeUInt16LE(2, end + 10);
      }),
      /differ/,
    ],
    ['a part of several', changed(whole, (c) => c.writeUInt16LE(1, end + 4)), /several files/],
    ['a comment', Buffer.concat([whole, Buffer.from('x')]), /does not end as a zip file/],
    ['something before it', Buffer.concat([Buffer.from('x'), whole]), /zip64 records are not at/],
  ];
  for (const [name, bytes, message] of cases)
    await t.rejects(read(bytes), { code: 'torch_file_invalid', message }, name);
});

t.test('more than 65535 entries need 64-bit counts', async (t) => {
  const many = Array.from({ length: 65_535 }, (_, i) => entry(`a/${i}`, ''));
  const bytes = await archive(...many);
  t.equal((await readTorchFile(memorySource(bytes, 'many.pt', 1 << 20))).value, null);
});

t.test('an entry of more than 4 GiB, which is never in memory', async (t) => {
  const piece = Buffer.alloc(1 << 24);
  const pieces = 256 + 1;
  const zeros = {
    name: 'a/data/0',
    bytes: piece.length * pieces,
    content: (function* () {
      for (let i = 0; i < pieces; i++) yield piece;
    })(),
  };
  // Zeros are not stored: a source of repeated pieces provides the whole file.
  const parts: Uint8Array[] = [];
  for await (const part of zipArchive([entry('a/data.pkl', PICKLE), zeros, entry('a/version', '3\n')]))
    parts.push(part);
  const file = await readTorchFile(partsSource(parts));
  t.equal(file.value, null);
});

/** Returns a source of consecutive parts, many of which share memory. */
function partsSource(parts: readonly Uint8Array[]) {
  const ends: number[] = [];
  for (const { length } of parts) ends.push((ends.at(-1) ?? 0) + length);
  const range = function* (begin: number, end: number) {
    for (const [i, part] of parts.entries()) {
      const first = (ends[i] ?? 0) - part.length;
      const piece = part.subarray(Math.max(0, begin - first), Math.max(0, end - first));
      if (piece.length > 0) yield piece;
    }
  };
  return {
    name: 'large.pt',
    bytes: ends.at(-1) ?? 0,
    read: async (begin: number, end: number) => Buffer.concat([...range(begin, end)]),
    stream: async (begin: number, end: number) =>
      (async function* () {
        yield* range(begin, end);
      })(),
  };
}
