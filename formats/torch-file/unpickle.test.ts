import t from 'tap';
import { unpickle } from './unpickle.js';
import { Global, PyRecord, type TorchDict, TorchTensor, type TorchValue } from './values.js';

const b = (...parts: (string | number[])[]) =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))),
  );
const read = (...parts: (string | number[])[]) => unpickle(b([0x80, 2], ...parts), 'x.pt');
const text = (value: string) => `X${String.fromCharCode(value.length)}\0\0\0${value}`;

const ZERO = 'deepspeed.runtime.zero.config.';

const NUMPY = 'cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\n';
const LATIN = 'c_codecs\nencode\n';
const STAGE = 'cdeepspeed.runtime.zero.config\nZeroStageEnum\n';

t.test('objects that DeepSpeed and PyTorch pickle beside tensors are records, never instances', async (t) => {
  const record = (name: string, args: TorchValue[], attributes: TorchDict = new Map()) =>
    Object.assign(new PyRecord(name, args), { attributes });
  const scaler = 'deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler';
  const fragment = 'deepspeed.utils.tensor_fragment.fragment_address';
  const cases: [string, (string | number[])[], TorchValue][] = [
    [
      'a loss scaler',
      [
        ...['cdeepspeed.runtime.fp16.loss_scaler\nDynamicLossScaler\n)', [0x81], '}('],
        ...[text('cur_scale'), 'K', [8], text('dtype'), 'ctorch\nfloat16\nub.'],
      ],
      record(
        scaler,
        [],
        new Map<string, TorchValue>([
          ['cur_scale', 8],
          ['dtype', new Global('torch.float16')],
        ]),
      ),
    ],
    ['a stage by its number', [STAGE, 'K', [2, 0x85], 'R.'], record(`${ZERO}ZeroStageEnum`, [2])],
    [
      'a stage by its name, as Python 3.11 had it',
      ['c__builtin__\ngetattr\n', STAGE, text('gradients'), [0x86], 'R.'],
      record(`${ZERO}ZeroStageEnum`, ['gradients']),
    ],
    [
      'an address',
      ['cdeepspeed.utils.tensor_fragment\nfragment_address\n)', [0x81], '}', text('numel'), 'K', [4], 'sb.'],
      record(fragment, [], new Map([['numel', 4]])),
    ],
    [
      'a device',
      ['ctorch\ndevice\n', text('cuda'), 'K', [0, 0x86], 'R.'],
      record('torch.device', ['cuda', 0]),
    ],
    ['a set', ['c__builtin__\nset\n]', [0x85], 'R.'], record('__builtin__.set', [[]])],
    [
      'a number of NumPy',
      [
        NUMPY,
        text('f8'),
        [0x89, 0x88, 0x87],
        'R(K',
        [3],
        text('<'),
        'tb',
        LATIN,
        text('x'),
        text('latin1'),
        ...[[0x86], 'R', [0x86], 'R.'],
      ],
      record('numpy.core.multiarray.scalar', [
        record('numpy.dtype', ['f8', false, true]),
        record('_codecs.encode', ['x', 'latin1']),
      ]),
    ],
  ];
  for (const [name, parts, expected] of cases) t.strictSame(read(...parts), expected, name);
});

t.test('a tensor with custom attributes is that tensor', async (t) => {
  const storage = ['(', text('storage'), 'ctorch\nFloatStorage\n', text('0'), text('cpu'), 'K', [6], 'tQ'];
  const args = [
    '(',
    ...storage,
    'K',
    [0],
    'K',
    [6, 0x85],
    'K',
    [1, 0x85, 0x89],
    'ccollections\nOrderedDict\n)Rt',
  ];
  const from = (type: string, ...call: (string | number[])[]) =>
    read(
      'ctorch._tensor\n_rebuild_from_type_v2\n(',
      ...call,
      type,
      ...args,
      '}',
      text('ds_id'),
      text('0_20'),
      'stR.',
    );
  const plain = read('ctorch._utils\n_rebuild_tensor_v2\n', ...args, 'R.');
  t.strictSame(plain, new TorchTensor('F32', [6], '0', 0, 6, [1]));
  const call = 'ctorch._utils\n_rebuild_tensor_v2\n';
  t.strictSame(from('ctorch\nTensor\n', call), plain);
  t.strictSame(from('ctorch.nn.parameter\nParameter\n', call), plain);
  for (const bad of [
    () => from('ctorch\nfloat16\n', call),
    () => from('ctorch\nTensor\n', 'c_codecs\nencode\n'),
    () => from('ctorch\nTensor\n', 'c__builtin__\ngetattr\n'),
    () => from('N', call),
  ])
    t.throws(bad, {
      code: 'torch_file_unsafe',
      message: /calls torch._tensor._rebuild_from_type_v2 with invalid arguments/,
    });
});

const REFUSED: [string, (string | number[])[], RegExp][] = [
  ['INST', ['(', text('ls'), 'ios\nsystem\n.'], /opcode INST \(0x69\)/],
  ['OBJ', ['(cos\nsystem\n', text('ls'), 'o.'], /names "os.system"/],
  ['OBJ of an allowed global', ['(ctorch\nSize\n', 'o.'], /opcode OBJ/],
  ['NEWOBJ of an unknown class', ['ctorch\nSize\n)', [0x81], '.'], /unknown class \(NEWOBJ\)/],
  ['NEWOBJ_EX', ['ctorch\nSize\n)}', [0x92], '.'], /opcode NEWOBJ_EX/],
  ['BUILD of a list', [']}b.'], /state of an object \(BUILD\)/],
  ['BUILD of a tensor class', ['ctorch\nFloatStorage\n}b.'], /\(BUILD\)/],
  ['REDUCE of a text', [text('x'), ')R.'], /calls a value that is not a function/],
  [
    'REDUCE of a class with other arguments',
    ['ccollections\nOrderedDict\n', 'K', [1], [0x85], 'R.'],
    /with invalid arguments/,
  ],
  [
    'getattr of another object',
    ['c__builtin__\ngetattr\n', text('a'), text('upper'), [0x86], 'R.'],
    /with invalid arguments/,
  ],
  [
    'getattr of a class that is not an enumeration',
    ['cbuiltins\ngetattr\nctorch\nTensor\n', text('to'), [0x86], 'R.'],
    /with invalid arguments/,
  ],
  ['a class that can not be called', ['ctorch\nTensor\n)R.'], /with invalid arguments/],
  [
    'a tensor with too many dimensions',
    [
      'ctorch._utils\n_rebuild_tensor_v2\n((',
      text('storage'),
      'ctorch\nFloatStorage\n',
      text('0'),
      text('cpu'),
      'K',
      [1],
      'tQK',
      [0],
      '(',
      'K\x01'.repeat(65),
      'tq',
      [1],
      'h',
      [1, 0x89],
      'NtR.',
    ],
    /describes an invalid tensor/,
  ],
  ['REDUCE of a storage class', ['ctorch\nFloatStorage\n)R.'], /with invalid arguments/],
  [
    '_rebuild_tensor_v2 without arguments',
    ['ctorch._utils\n_rebuild_tensor_v2\n)R.'],
    /describes an invalid tensor/,
  ],
  ['a global across two lines', ['cos\nsystem\n.'], /names "os.system"/],
  ['STACK_GLOBAL', [text('os'), text('system'), [0x93], '.'], /names "os.system"/],
  ['STACK_GLOBAL of numbers', ['K', [1], 'K', [1], [0x93], '.'], /names no global/],
  ['an extension', [[0x82, 1], '.'], /opcode EXT1/],
  ['a persistent id as a text', ['Pabc\n.'], /opcode PERSID/],
  ['a persistent id of something else', [text('module'), 'Q.'], /names no storage/],
  ['a set', [[0x8f], '.'], /EMPTY_SET/],
  ['an unknown opcode', [[0xff], '.'], /opcode 0xff/],
  ['an end without a value', ['.'], /empty stack/],
  ['values left on the stack', ['NN.'], /leaves values on the stack/],
  ['something after the end', ['N.N'], /goes on after its end/],
  ['an early end', ['X', [10, 0, 0, 0], 'abc'], /ends early/],
  ['a false length', ['X', [0xff, 0xff, 0xff, 0xff], 'abc.'], /ends early/],
  ['an unterminated line', ['cos'], /ends early/],
  ['a missing mark', ['t.'], /no mark/],
  ['a mark as a value', ['(.'], /empty stack/],
  ['a missing memo', ['h', [7], '.'], /missing memo entry/],
  ['an item of a list', [']NNs.'], /value that is not a dict/],
  ['an append to a dict', ['}Na.'], /value that is not a list/],
  ['a key twice', ['}(', text('a'), 'N', text('a'), 'Nu.'], /key "a" twice/],
  ['a key that is a list', ['}(]Nu.'], /neither text nor number/],
  ['an odd number of items', ['}(', text('a'), 'u.'], /value that is not a dict/],
  ['an unbounded number', [[0x8a, 9], '\xff\xff\xff\xff\xff\xff\xff\xff\x01', '.'], /53 bits/],
  ['a text that is not UTF-8', ['X', [1, 0, 0, 0, 0xff], '.'], /not UTF-8/],
];
for (const [name, parts, message] of REFUSED)
  t.test(`refused: ${name}`, async (t) => {
    t.throws(() => read(...parts), { code: 'torch_file_unsafe', message });
  });

t.test('another protocol is refused', async (t) => {
  t.throws(() => unpickle(b([0x80, 1], 'N.'), 'x.pt'), { message: /protocol 1/ });
});

t.test('every truncation of a pickle is refused', async (t) => {
  const whole = b([0x80, 2], '}(', text('a'), ']', text('b'), 'K', [1], 'u.');
  t.same(
    unpickle(whole, 'x.pt'),
    new Map<string, unknown>([
      ['a', []],
      ['b', 1],
    ]),
  );
  for (let bytes = 0; bytes < whole.length; bytes++)
    t.throws(() => unpickle(whole.subarray(0, bytes), 'x.pt'), { code: 'torch_file_unsafe' });
});

t.test('a value with several references exists once', async (t) => {
  // Each list contains the previous one twice: written out there would be 2^60 values.
  const doubled: (string | number[])[] = ['](', ']', 'q', [0]];
  for (let i = 1; i <= 60; i++) doubled.push('](', 'h', [i - 1], 'h', [i - 1], 'e', 'q', [i]);
  let value = read(...doubled, 'e.');
  if (!Array.isArray(value)) throw new Error('no list');
  t.equal(value.length, 61);
  for (let depth = value.length - 1; depth > 0; depth--) {
    value = Array.isArray(value) ? (value.at(-1) ?? null) : null;
    t.ok(Array.isArray(value));
  }
});
