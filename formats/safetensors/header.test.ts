import fc from 'fast-check';
import t from 'tap';
import { ZerofleetError } from '../../contracts/index.js';
import {
  ELEMENT_BYTES,
  type HeaderTensor,
  type SafetensorsDtype,
  type SafetensorsHeader,
  safetensorsHeader,
} from './header.js';
import { parseSafetensorsHeader, safetensorsHeaderBytes } from './read-header.js';

/** Builds a file from the format's description, not with our own writer. */
function fileOf(json: string, dataBytes = 0): Buffer {
  const text = Buffer.from(json);
  const file = Buffer.alloc(8 + text.length + dataBytes);
  file.writeBigUInt64LE(BigInt(text.length));
  text.copy(file, 8);
  return file;
}

const entry = (dtype: string, shape: unknown, offsets: unknown) =>
  JSON.stringify({ dtype, shape, data_offsets: offsets });

t.test('a written header can be read', async (t) => {
  const tensors = [
    { name: 'a.weight', dtype: 'F32' as const, shape: [2, 3], begin: 0, end: 24 },
    { name: 'b', dtype: 'BF16' as const, shape: [5], begin: 24, end: 34 },
    { name: 'scalar', dtype: 'F32' as const, shape: [], begin: 34, end: 38 },
    { name: 'empty', dtype: 'F16' as const, shape: [0, 7], begin: 38, end: 38 },
  ];
  const header = safetensorsHeader(tensors, { format: 'pt' });
  t.equal(header.length % 8, 0, 'the data begins aligned');
  t.equal(safetensorsHeaderBytes(header), header.length);
  const file = Buffer.concat([header, Buffer.alloc(38)]);
  t.same(parseSafetensorsHeader(file, { name: 'a file', bytes: file.length }), {
    bytes: header.length,
    metadata: { format: 'pt' },
    tensors,
  });
  const foreign = fileOf(`{"x":${entry('BF16', [1], [0, 2])}}   `, 2);
  t.same(parseSafetensorsHeader(foreign, { name: 'foreign', bytes: foreign.length }).tensors, [
    { name: 'x', dtype: 'BF16', shape: [1], begin: 0, end: 2 },
  ]);
  const gap = [{ name: 'x', dtype: 'F32' as const, shape: [1], begin: 4, end: 8 }];
  t.throws(() => safetensorsHeader(gap, {}), { code: 'safetensors_invalid' }, 'a gap is never written');
});

t.test('every invalid header is refused with file and tensor', async (t) => {
  const one = entry('F32', [1], [0, 4]);
  const bad: [string, Buffer, RegExp][] = [
    ['no length', Buffer.alloc(3), /^f: ends after 3 bytes/],
    ['an excessive length', Buffer.alloc(8, 0xff), /^f: declares a header of 18446744073709551615/],
    ['a length beyond the file', fileOf(`{"x":${one}}`).subarray(0, 20), /but ends after 20 bytes in all/],
    ['a list', fileOf('[]'), /not a JSON object/],
    ['leading space', fileOf(' {}'), /not a JSON object/],
    ['half a document', fileOf('{"x"'), /not JSON/],
    ['not UTF-8', fileOf('{"?":1}').fill(0xff, 10, 11), /not JSON/],
    ['no entry', fileOf('{"x":null}'), /tensor "x" has no dtype, shape and offsets/],
    [
      'an unknown dtype',
      fileOf(`{"x":${entry('F4', [1], [0, 8])}}`),
      /tensor "x" has the dtype "F4", which is/,
    ],
    [
      'a dtype of the prototype',
      fileOf(`{"x":${entry('toString', [1], [0, 8])}}`),
      /tensor "x" has the dtype/,
    ],
    ['more bytes than elements', fileOf(`{"x":${entry('F32', [1], [0, 8])}}`, 8), /"x" has 8 bytes for 1 el/],
    ['a negative size', fileOf(`{"x":${entry('F32', [-1], [0, 4])}}`, 4), /"x" has no shape/],
    ['a fraction', fileOf(`{"x":${entry('F32', [0.5], [0, 2])}}`, 2), /"x" has no shape/],
    [
      'an impossible shape',
      fileOf(`{"x":${entry('F32', [2 ** 52, 2 ** 52], [0, 4])}}`, 4),
      /impossible shape/,
    ],
    ['one offset', fileOf(`{"x":${entry('F32', [1], [0])}}`, 4), /"x" has no data_offsets/],
    [
      'backwards',
      fileOf(`{"x":${entry('F32', [1], [4, 0])}}`, 4),
      /"x" ends at byte 0, before it begins at 4/,
    ],
    ['a gap', fileOf(`{"x":${entry('F32', [1], [4, 8])}}`, 8), /"x" begins at byte 4, after a gap from 0/],
    [
      'an overlap',
      fileOf(`{"x":${one},"y":${entry('F32', [1], [2, 6])}}`, 6),
      /"y" begins at byte 2, inside/,
    ],
    ['twice the same bytes', fileOf(`{"x":${one},"y":${one}}`, 4), /"y" begins at byte 0, inside/],
    ['a name twice', fileOf(`{"x":${one},"x":${one}}`, 4), /tensor "x" occurs twice/],
    ['a name twice, once escaped', fileOf(`{"x":${one},"\\u0078":${one}}`, 4), /tensor "x" occurs twice/],
    ['a field twice', fileOf(`{"x":{"dtype":"F32",${one.slice(1)}}`, 4), /"x" has the field dtype twice/],
    ['metadata of numbers', fileOf('{"__metadata__":{"a":1}}'), /__metadata__/],
    ['truncated data', fileOf(`{"x":${one}}`, 3), /"x" ends at byte 66 of the file, but only 65/],
    ['unused bytes', fileOf(`{"x":${one}}`, 5), /has 1 bytes after its last tensor/],
  ];
  for (const [name, bytes, message] of bad) {
    const read = () => parseSafetensorsHeader(bytes, { name: 'f', bytes: bytes.length });
    t.throws(read, { code: 'safetensors_invalid', message, details: { file: 'f' } }, name);
  }
  t.throws(() => parseSafetensorsHeader(safetensorsHeader([], {}).subarray(0, 12)), {
    message: /inside of its header/,
  });
});

const dtypes = Object.keys(ELEMENT_BYTES) as SafetensorsDtype[];
const anyTensors = fc
  .uniqueArray(
    fc.record({
      name: fc.string({ unit: 'binary' }).filter((name) => name !== '__metadata__'),
      dtype: fc.constantFrom(...dtypes),
      shape: fc.array(fc.nat(4), { maxLength: 3 }),
    }),
    { selector: ({ name }) => name, maxLength: 6 },
  )
  .map((list): HeaderTensor[] => {
    let at = 0;
    return list.map(({ name, dtype, shape }) => {
      const begin = at;
      at += shape.reduce((product, size) => product * size, 1) * ELEMENT_BYTES[dtype];
      return { name, dtype, shape, begin, end: at };
    });
  });

t.test('property: any tensors make the round trip', async (t) => {
  fc.assert(
    fc.property(anyTensors, fc.dictionary(fc.string(), fc.string()), (tensors, metadata) => {
      const header = safetensorsHeader(tensors, metadata);
      const bytes = header.length + (tensors.at(-1)?.end ?? 0);
      const read = parseSafetensorsHeader(header, { name: 'f', bytes });
      const sorted = (list: readonly HeaderTensor[]) => list.map((tensor) => JSON.stringify(tensor)).sort();
      t.strictSame(sorted(read.tensors), sorted(tensors));
      return JSON.stringify(read.metadata) === JSON.stringify({ ...metadata });
    }),
    { numRuns: 300 },
  );
});

interface Mutation {
  at: number;
  change: 'set' | 'drop' | 'insert' | 'swap';
  byte: number;
}

const mutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(),
  change: fc.constantFrom('set', 'drop', 'insert', 'swap'),
  byte: fc.oneof(fc.nat(255), fc.constantFrom(...Buffer.from('0123456789{}[],:"\\-e.')).map(Number)),
});

function mutated(file: Buffer, { at, change, byte }: Mutation): Buffer {
  const position = at % file.length;
  if (change === 'swap') {
    file.subarray(position, position + 4).reverse();
    return file;
  }
  const after = file.subarray(change === 'insert' ? position : position + 1);
  return Buffer.concat([
    file.subarray(0, position),
    change === 'drop' ? Buffer.alloc(0) : Buffer.of(byte),
    after,
  ]);
}

/** Returns whether header and tensors fill a file of `bytes` bytes without gaps. */
function fills({ bytes: headerBytes, tensors }: SafetensorsHeader, bytes: number): boolean {
  let position = 0;
  for (const { dtype, shape, begin, end } of tensors) {
    const numel = shape.reduce((product, size) => product * size, 1);
    if (begin !== position || end - begin !== numel * ELEMENT_BYTES[dtype]) return false;
    position = end;
  }
  return headerBytes + position === bytes;
}

t.test('property: a mutated header is refused, or describes a file without gaps and overlaps', async (t) => {
  let refused = 0;
  fc.assert(
    fc.property(anyTensors, fc.array(mutation, { minLength: 1, maxLength: 4 }), (tensors, mutations) => {
      const header = safetensorsHeader(tensors, { format: 'pt' });
      const bytes = header.length + (tensors.at(-1)?.end ?? 0);
      try {
        return fills(parseSafetensorsHeader(mutations.reduce(mutated, header), { name: 'f', bytes }), bytes);
      } catch (error) {
        refused++;
        return error instanceof ZerofleetError && error.code === 'safetensors_invalid';
      }
    }),
    { numRuns: 3000 },
  );
  t.ok(refused > 1000, `${refused} were refused`);
});
