import t from 'tap';
import { ZerofleetError } from '../../contracts/index.js';
import type { TorchFile } from './read.js';
import { decodeTorchFile, encodeTorchFile } from './record.js';
import { Global, PyFloat, PyRecord, PyTuple, Storage, TorchTensor, type TorchValue } from './values.js';

const far = new TorchTensor('F32', [1], 'x', 0, 1, [1]);

function fileOf(value: TorchValue): TorchFile {
  const location = (tensor: TorchTensor) => {
    if (tensor === far) throw new ZerofleetError('torch_file_invalid', 'f: it lies outside');
    return { byte_begin: 8, byte_end: 20, content: tensor.numel === 3 ? Buffer.from('abc') : null };
  };
  return { value, location };
}

t.test('a file encoded as JSON has the same values and tensor locations', async (t) => {
  const [few, many] = [
    new TorchTensor('I64', [3], 'a', 0, 3, [1]),
    new TorchTensor('BF16', [2, 4], 'b', 0, 8, [4, 1]),
  ];
  const record = new PyRecord('deepspeed.x', [1, 'two']);
  record.attributes = new Map<string, TorchValue>([['scale', new PyFloat(Number.POSITIVE_INFINITY)]]);
  const values: TorchValue[] = [
    null,
    true,
    1,
    'text',
    new PyFloat(1),
    new PyTuple([1, [2]]),
    record,
    new Global('torch.bool'),
  ];
  const value = new Map<string | number, TorchValue>([
    [7, [...values, new Storage('FloatStorage', 's', 4)]],
    ['few', few],
    ['many', many],
    ['far', far],
  ]);
  const file = fileOf(value);
  const json = JSON.stringify(encodeTorchFile('f', file));
  const back = decodeTorchFile(JSON.parse(json));
  const dict = back.value as typeof value;
  t.same(dict.get(7), [...values, null], 'a storage alone has no meaning');
  for (const [name, tensor] of [
    ['few', few],
    ['many', many],
  ] as const) {
    const found = dict.get(name) as TorchTensor;
    t.match(found, { dtype: tensor.dtype, shape: tensor.shape, numel: tensor.numel });
    t.same(back.location(found), file.location(tensor));
  }
  t.throws(() => back.location(dict.get('far') as TorchTensor), {
    code: 'torch_file_invalid',
    message: 'f: it lies outside',
  });
});

t.test('unbounded repetition is refused', async (t) => {
  let value: TorchValue = [1, 2];
  for (let depth = 0; depth < 30; depth++) value = [value, value];
  t.throws(() => encodeTorchFile('f', fileOf(value)), {
    code: 'torch_file_invalid',
    message: /more than 2000000 values/,
  });
});
