import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { testPython } from '../../platform/testing/python.js';
import { collect, memorySource } from '../testing/byte-source.js';
import { readTorchFile } from './read.js';
import { Global, PyFloat, PyRecord, PyTuple, TorchTensor, type TorchValue } from './values.js';
import { inMemory, TorchFileWriter } from './write.js';

const WEIGHTS = Float32Array.from({ length: 15 }, (_, i) => i / 7 - 1);
const bytesOf = (values: Float32Array) => new Uint8Array(values.buffer);

/** Returns one value of every supported kind. */
function everything(): { writer: TorchFileWriter; value: TorchValue } {
  const writer = new TorchFileWriter();
  const half = Buffer.from(Uint16Array.of(0x3c00, 0xc000).buffer);
  const value: TorchValue = new Map<string, TorchValue>([
    ['param', writer.tensor('F32', [3, 5], inMemory(bytesOf(WEIGHTS)))],
    ['half', writer.tensor('F16', [2], inMemory(half))],
    ['bf16', writer.tensor('BF16', [2], inMemory(Buffer.from(Uint16Array.of(0x3f80, 0xc000).buffer)))],
    ['step', writer.tensor('F32', [], inMemory(bytesOf(Float32Array.of(12))))],
    [
      'list',
      [1, -5, 70000, 2 ** 40, -(2 ** 40), new PyFloat(1), true, false, null, 'é', new PyTuple([1, 2])],
    ],
    ['empty', [new Map(), [], new PyTuple([])]],
  ]);
  return { writer, value };
}

t.test('a written file can be read', async (t) => {
  const { writer, value } = everything();
  const bytes = await collect(writer.file(value));
  const file = await readTorchFile(memorySource(bytes));
  t.same(file.value, value);
  const tensor = file.value instanceof Map ? file.value.get('param') : null;
  if (!(tensor instanceof TorchTensor)) throw new Error('no tensor');
  const { byte_begin, byte_end } = file.location(tensor);
  t.equal(byte_begin % 64, 0, 'aligned, so that PyTorch may map it');
  t.ok(bytes.subarray(byte_begin, byte_end).equals(Buffer.from(bytesOf(WEIGHTS))));
  t.ok(bytes.equals(await collect(writer.file(value))), 'deterministic');
});

t.test('an object is written by its class and its attributes', async (t) => {
  const scaler = new PyRecord('deepspeed.runtime.fp16.loss_scaler.LossScaler', []);
  scaler.attributes = new Map<string, TorchValue>([
    ['cur_scale', new PyFloat(128)],
    ['dtype', new Global('torch.float16')],
  ]);
  const file = await readTorchFile(memorySource(await collect(new TorchFileWriter().file(scaler))));
  t.same(file.value, scaler);
});

t.test('a tensor with too many or too few bytes is not written', async (t) => {
  const writer = new TorchFileWriter();
  const tensor = writer.tensor('F32', [3], inMemory(Buffer.alloc(8)));
  await t.rejects(collect(writer.file(tensor)), /8 bytes instead of 12/);
  await t.rejects(collect(writer.file(0.5)), /use PyFloat/);
});

const python = testPython('torch');
const SCRIPT = `
import json, sys, torch
for mmap in (False, True):
    d = torch.load(sys.argv[1], weights_only=True, mmap=mmap)
print(json.dumps({
    'param': d['param'].double().tolist(), 'dtype': [str(d[k].dtype) for k in ('param', 'half', 'bf16', 'step')],
    'half': d['half'].tolist(), 'bf16': d['bf16'].tolist(), 'step': d['step'].item(), 'list': d['list'], 'empty': str(d['empty']),
    'types': [type(x).__name__ for x in d['list']],
}))
`;

t.test(
  'torch.load(weights_only=True) reads a written file',
  python.missing ? { skip: python.missing } : {},
  async (t) => {
    const { writer, value } = everything();
    const file = join(t.testdir(), 'x.pt');
    writeFileSync(file, await collect(writer.file(value)));
    const { status, stdout, stderr } = spawnSync(python.program, ['-c', SCRIPT, file], { encoding: 'utf8' });
    t.equal(status, 0, stderr);
    const rows = [0, 5, 10].map((at) => [...WEIGHTS.subarray(at, at + 5)]);
    t.same(JSON.parse(stdout), {
      param: rows,
      dtype: ['torch.float32', 'torch.float16', 'torch.bfloat16', 'torch.float32'],
      half: [1, -2],
      bf16: [1, -2],
      step: 12,
      list: [1, -5, 70000, 2 ** 40, -(2 ** 40), 1, true, false, null, 'é', [1, 2]],
      empty: '[{}, [], ()]',
      types: ['int', 'int', 'int', 'int', 'int', 'float', 'bool', 'bool', 'NoneType', 'str', 'tuple'],
    });
  },
);
