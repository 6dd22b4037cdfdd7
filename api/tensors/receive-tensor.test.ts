import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { type HeaderTensor, safetensorsHeader } from '../../formats/safetensors/header.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { type ReplacedTensor, receiveTensor } from './receive-tensor.js';

const TENSOR: ReplacedTensor = { name: 'w', state: 'master', shape: [3, 2], precision: 'bf16' };
const VALUES = [1, -2, 0, 3.5e-41, 1e30, -1e-30];

const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
t.teardown(() => objects.close());

const bytesOf = (values: readonly number[]) => Buffer.from(Float32Array.from(values).buffer);

function fileOf(values: readonly number[], changes: Partial<HeaderTensor> = {}): Buffer {
  const end = values.length * 4;
  const entry = { name: 'w', dtype: 'F32' as const, shape: [3, 2], begin: 0, end, ...changes };
  return Buffer.concat([safetensorsHeader([entry], {}), bytesOf(values)]);
}

async function* cut(file: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < file.length; at += size) yield file.subarray(at, at + size);
}

t.test('values are stored as they arrive, whatever the pieces', async (t) => {
  const file = fileOf(VALUES);
  for (const size of [1, 3, 7, 64, file.length]) {
    const { key, sha256 } = await receiveTensor(objects, `pieces/${size}`, cut(file, size), TENSOR);
    const stored = await objects.get(key);
    t.strictSame(stored, bytesOf(VALUES), `pieces of ${size} bytes`);
    t.equal(sha256, createHash('sha256').update(stored).digest('hex'));
  }
});

t.test('another file is refused, and nothing is stored', async (t) => {
  const two = Buffer.concat([
    safetensorsHeader(
      [
        { name: 'w', dtype: 'F32', shape: [3, 2], begin: 0, end: 24 },
        { name: 'v', dtype: 'F32', shape: [1], begin: 24, end: 28 },
      ],
      {},
    ),
    Buffer.alloc(28),
  ]);
  const long = Buffer.alloc(80_000);
  long.writeBigUInt64LE(79_000n);
  const changed = (at: number, value: number) => VALUES.map((old, i) => (i === at ? value : old));
  const sums = { ...TENSOR, state: 'exp_avg_sq' as const };
  const cases: [Buffer, string, RegExp, ReplacedTensor?][] = [
    [Buffer.from('torch'), 'tensor_invalid', /ends after 5 bytes, inside of its header/],
    [Buffer.from('{"w": [1, 2, 3]}'), 'safetensors_invalid', /declares a header of \d+ bytes/],
    [long, 'tensor_invalid', /the header has 79008 bytes/],
    [two, 'tensor_invalid', /has 2 tensors; send one file with one tensor/],
    [fileOf(VALUES, { name: 'v' }), 'tensor_invalid', /the tensor "v" instead of w/],
    [fileOf(VALUES, { shape: [2, 3] }), 'tensor_invalid', /shape \[2,3\] in the file and \[3,2\]/],
    [fileOf(VALUES, { dtype: 'I32' }), 'tensor_invalid', /w is I32 in the file; convert it to F32/],
    [fileOf(VALUES).subarray(0, -4), 'tensor_invalid', /fewer values/],
    [fileOf(VALUES).subarray(0, -3), 'tensor_invalid', /fewer values/],
    [Buffer.concat([fileOf(VALUES), Buffer.alloc(4)]), 'tensor_invalid', /more values/],
    [fileOf(changed(5, Number.NaN)), 'tensor_invalid', /the value NaN; all values must be finite/],
    [fileOf(changed(0, Number.NEGATIVE_INFINITY)), 'tensor_invalid', /the value -Infinity/],
    [fileOf(changed(2, 3.4e38)), 'tensor_invalid', /infinite in bf16, the precision of the training/],
    [fileOf(changed(2, -65520)), 'tensor_invalid', /infinite in fp16/, { ...TENSOR, precision: 'fp16' }],
    [fileOf(VALUES), 'tensor_invalid', /the value -2; exp_avg_sq is a sum of squares/, sums],
  ];
  for (const [file, code, message, tensor = TENSOR] of cases) {
    await t.rejects(
      receiveTensor(objects, 'refused', cut(file, 10), tensor),
      { code, message },
      String(message),
    );
    t.equal(await objects.head('refused'), null);
  }
});

t.test('values at the ends of the ranges are taken', async (t) => {
  const cases: [number[], ReplacedTensor][] = [
    [[65519, -65519, 0, 0, 0, 0], { ...TENSOR, precision: 'fp16' }],
    [[3.39e38, -3.39e38, 0, 0, 0, 0], TENSOR],
    [[3.4e38, -3.4e38, 0, 0, 0, 0], { ...TENSOR, precision: 'fp32' }],
    [[3.4e38, 0, -0, 0, 0, 0], { ...TENSOR, state: 'exp_avg_sq', precision: 'fp16' }],
  ];
  for (const [values, tensor] of cases)
    await t.resolves(receiveTensor(objects, 'ends', cut(fileOf(values), 1000), tensor), String(values));
});
