/** Files written by the real torch.save: golden/make_golden.py. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { memorySource } from '../testing/byte-source.js';
import { readTorchFile, scalarOf } from './read.js';
import { numberOf, PyFloat, PyRecord, PyTuple, TorchTensor, type TorchValue } from './values.js';

const GOLDEN = join(projectRoot(), 'formats/torch-file/golden');
const bytesOf = (name: string) => readFileSync(join(GOLDEN, `${name}.pt`));
const open = (name: string) => readTorchFile(memorySource(bytesOf(name), `${name}.pt`));
type Golden = Record<string, Record<string, { shape: number[]; hex: string }>>;
const golden = JSON.parse(readFileSync(join(GOLDEN, 'golden.json'), 'utf8')) as Golden;

const itemOf = (value: TorchValue, key: string) => (value instanceof Map ? value.get(key) : value);

for (const [name, tensors] of Object.entries(golden)) {
  if (name === 'strided') continue;
  t.test(`a file of torch.save: ${name}`, async (t) => {
    const file = await open(name);
    for (const [key, { shape, hex }] of Object.entries(tensors)) {
      const tensor = itemOf(file.value, key);
      if (!(tensor instanceof TorchTensor)) throw new Error(`${key} is no tensor`);
      t.strictSame(tensor.shape, shape);
      const { byte_begin, byte_end } = file.location(tensor);
      t.equal(bytesOf(name).subarray(byte_begin, byte_end).toString('hex'), hex);
    }
  });
}

t.test('plain values are those of Python', async (t) => {
  const { value } = await open('plain');
  if (!(value instanceof Map)) throw new Error('no dict');
  const list = [
    1,
    -5,
    70000,
    2 ** 40,
    new PyFloat(1.5),
    true,
    null,
    'é',
    new PyTuple([1, 2, 3, 4]),
    new PyTuple([]),
  ];
  t.strictSame([...value.keys()], ['list', 3]);
  t.same(value.get('list'), list);
  t.equal(value.get(3), 'key');
  t.equal(numberOf(new PyFloat(1.5)), 1.5);
  t.equal(numberOf('1.5'), null);
});

t.test('counters are tensors or numbers', async (t) => {
  for (const [name, expected] of [
    ['scalar_float', 7],
    ['scalar_long', 123456789012],
  ] as const) {
    const file = await open(name);
    t.equal(scalarOf(file, file.value), expected);
  }
  const file = await open('bare');
  t.equal(scalarOf(file, file.value), null, 'a tensor of several elements is not a scalar');
  t.equal(scalarOf(file, 5), 5);
});

t.test('the state of a module has its shapes; attributes set by BUILD are dropped', async (t) => {
  const { value } = await open('state_dict');
  const state = itemOf(value, 'module');
  t.same(state instanceof Map && [...state.keys()], ['weight', 'bias']);
  const shapes = itemOf(value, 'param_shapes');
  t.same(Array.isArray(shapes) && shapes[0], new Map([['w', new PyTuple([2, 3])]]));
});

t.test('a tensor with gaps is refused on access', async (t) => {
  const file = await open('strided');
  const tensor = itemOf(file.value, 'param');
  t.throws(() => file.location(tensor as TorchTensor), { code: 'torch_file_invalid', message: /contiguous/ });
});

t.test('bytes are read as the call that Python would make, without making it', async (t) => {
  const { value } = await open('hostile_bytes');
  t.strictSame(itemOf(value, 'x'), new PyRecord('_codecs.encode', ['bytes', 'latin1']));
});

const HOSTILE: [string, string, RegExp][] = [
  ['system', 'torch_file_unsafe', /names "(posix|nt)\.system", which is not allowed in a tensor file/],
  ['eval', 'torch_file_unsafe', /names "__builtin__\.eval"/],
  ['getattr', 'torch_file_unsafe', /calls builtins\.getattr with invalid arguments/],
  ['object', 'torch_file_unsafe', /names "__main__\.Plain"/],
  ['torch', 'torch_file_unsafe', /names "torch\.serialization\.load"/],
  ['legacy', 'torch_file_invalid', /does not end as a zip file does/],
];
for (const [name, code, message] of HOSTILE)
  t.test(`hostile, as written by Python: ${name}`, async (t) => {
    await t.rejects(open(`hostile_${name}`), { code, message });
    t.notOk(existsSync('ZEROFLEET_WAS_HERE'));
  });
