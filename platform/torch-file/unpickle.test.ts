import t from 'tap';
import { unpickle } from './unpickle.js';
import { OpaqueObject } from './values.js';

const b = (...parts: (string | number[])[]) =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))),
  );
const read = (...parts: (string | number[])[]) => unpickle(b([0x80, 2], ...parts), 'x.pt');
const text = (value: string) => `X${String.fromCharCode(value.length)}\0\0\0${value}`;

const SCALER = 'cdeepspeed.runtime.fp16.loss_scaler\nLossScaler\n';

t.test('the loss scaler of DeepSpeed is passed over', async (t) => {
  const value = read(SCALER, ')', [0x81], '}', text('cur_scale'), 'K', [1], 's', 'b.');
  t.same(value, new OpaqueObject('deepspeed.runtime.fp16.loss_scaler.LossScaler'));
});

const REFUSED: [string, (string | number[])[], RegExp][] = [
  ['INST', ['(', text('ls'), 'ios\nsystem\n.'], /opcode INST \(0x69\)/],
  ['OBJ', ['(cos\nsystem\n', text('ls'), 'o.'], /names "os.system"/],
  ['OBJ of what may be named', ['(ctorch\nSize\n', 'o.'], /opcode OBJ/],
  ['NEWOBJ of what is no class of ours', ['ctorch\nSize\n)', [0x81], '.'], /unknown class \(NEWOBJ\)/],
  ['NEWOBJ_EX', ['ctorch\nSize\n)}', [0x92], '.'], /opcode NEWOBJ_EX/],
  ['BUILD of a list', [']}b.'], /state of an object \(BUILD\)/],
  ['BUILD of a tensor class', ['ctorch\nFloatStorage\n}b.'], /\(BUILD\)/],
  ['REDUCE of a text', [text('x'), ')R.'], /calls what is no function/],
  [
    'REDUCE of a class with other arguments',
    ['ccollections\nOrderedDict\n', 'K', [1], [0x85], 'R.'],
    /does not take/,
  ],
  ['REDUCE of a storage class', ['ctorch\nFloatStorage\n)R.'], /does not take/],
  ['_rebuild_tensor_v2 of nothing', ['ctorch._utils\n_rebuild_tensor_v2\n)R.'], /describes a tensor wrongly/],
  ['a global across two lines', ['cos\nsystem\n.'], /names "os.system"/],
  ['STACK_GLOBAL', [text('os'), text('system'), [0x93], '.'], /names "os.system"/],
  ['STACK_GLOBAL of numbers', ['K', [1], 'K', [1], [0x93], '.'], /names no global/],
  ['an extension', [[0x82, 1], '.'], /opcode EXT1/],
  ['a persistent id as a text', ['Pabc\n.'], /opcode PERSID/],
  ['a persistent id of something else', [text('module'), 'Q.'], /names no storage/],
  ['a set', [[0x8f], '.'], /EMPTY_SET/],
  ['an unknown opcode', [[0xff], '.'], /opcode 0xff/],
  ['an end without a value', ['.'], /empty stack/],
  ['values left over', ['NN.'], /leaves values over/],
  ['something after the end', ['N.N'], /goes on after its end/],
  ['an early end', ['X', [10, 0, 0, 0], 'abc'], /ends early/],
  ['a length that lies', ['X', [0xff, 0xff, 0xff, 0xff], 'abc.'], /ends early/],
  ['a line without an end', ['cos'], /ends early/],
  ['a mark that is not there', ['t.'], /no mark/],
  ['a mark as a value', ['(.'], /empty stack/],
  ['a memo that is not there', ['h', [7], '.'], /never remembered/],
  ['an item of a list', [']NNs.'], /what is no dict/],
  ['an append to a dict', ['}Na.'], /what is no list/],
  ['a key twice', ['}(', text('a'), 'N', text('a'), 'Nu.'], /key "a" twice/],
  ['a key that is a list', ['}(]Nu.'], /neither text nor number/],
  ['an odd number of items', ['}(', text('a'), 'u.'], /what is no dict/],
  ['a number without end', [[0x8a, 9], '\xff\xff\xff\xff\xff\xff\xff\xff\x01', '.'], /53 bits/],
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

t.test('what is named again and again is there once', async (t) => {
  // Each list has the one before it twice: written out there would be 2^60 values.
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
