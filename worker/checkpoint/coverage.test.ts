import t from 'tap';
import type { ParamRecord, ShardRecord, TensorRecord } from '../../contracts/rank-protocol.js';
import { ADAM_STATES } from '../../platform/testing/checkpoints.js';
import { checkCoverage, type WholeState } from './coverage.js';

const params: ParamRecord[] = [
  { name: 'a', shape: [10, 10], numel: 100, group: 'decay', frozen: false },
  { name: 'b', shape: [7], numel: 7, group: 'no_decay', frozen: false },
];

const adamw: WholeState = { params, states: ADAM_STATES };

type Piece = [param: string, begin: number, end: number];

/** A shard that holds the pieces in every state. */
function shard(
  file: string,
  pieces: Piece[],
  states: readonly TensorRecord['state'][] = ADAM_STATES,
): ShardRecord {
  let at = 128;
  const tensors = states.flatMap((state) =>
    pieces.map(([param, element_begin, element_end]) => {
      const byte_begin = at;
      at += (element_end - element_begin) * 4;
      return { state, param, element_begin, element_end, byte_begin, byte_end: at };
    }),
  );
  return { file, bytes: at, sha256: '', crc32c: [], tensors };
}

const whole = () => [
  shard('s0', [['a', 0, 64]]),
  shard('s1', [
    ['a', 64, 100],
    ['b', 0, 7],
  ]),
];
const refused = { code: 'checkpoint_incomplete' };

t.test('shards that hold everything once pass, in any order', async (t) => {
  t.doesNotThrow(() => checkCoverage(adamw, whole()));
  t.doesNotThrow(() => checkCoverage(adamw, whole().reverse()));
});

t.test('a gap, an overlap, a short end and a missing parameter are refused', async (t) => {
  t.throws(
    () =>
      checkCoverage(adamw, [
        shard('s0', [['a', 0, 60]]),
        shard('s1', [
          ['a', 64, 100],
          ['b', 0, 7],
        ]),
      ]),
    {
      ...refused,
      message: /master\/a lacks elements \[60, 64\)/,
    },
  );
  t.throws(
    () =>
      checkCoverage(adamw, [
        shard('s0', [['a', 0, 68]]),
        shard('s1', [
          ['a', 64, 100],
          ['b', 0, 7],
        ]),
      ]),
    {
      ...refused,
      message: /twice/,
    },
  );
  t.throws(
    () =>
      checkCoverage(adamw, [
        shard('s0', [
          ['a', 0, 100],
          ['b', 0, 6],
        ]),
      ]),
    refused,
  );
  t.throws(() => checkCoverage(adamw, [shard('s0', [['a', 0, 100]])]), {
    ...refused,
    message: /master\/b ends at element 0 of 7/,
  });
});

t.test('a state that one shard left out is refused', async (t) => {
  const shards = whole();
  shards[1] = shard(
    's1',
    [
      ['a', 64, 100],
      ['b', 0, 7],
    ],
    ['master', 'exp_avg'],
  );
  t.throws(() => checkCoverage(adamw, shards), { ...refused, message: /exp_avg_sq\/a ends at element 64/ });
});

t.test('a parameter that the model does not have is refused', async (t) => {
  t.throws(() => checkCoverage(adamw, [...whole(), shard('s2', [['c', 0, 4]])]), {
    ...refused,
    message: /master\/c/,
  });
});

t.test('tensors lie in a file in any order', async (t) => {
  const shards = whole();
  for (const { tensors } of shards) tensors.reverse();
  t.doesNotThrow(() => checkCoverage(adamw, shards));
});

t.test('tensors that overlap in the file, reach beyond it or have a wrong size are refused', async (t) => {
  const damage = (change: (tensor: TensorRecord, shard: ShardRecord) => void) => {
    const shards = whole();
    change(shards[1]!.tensors[1]!, shards[1]!);
    return () => checkCoverage(adamw, shards);
  };
  t.throws(
    damage((tensor) => {
      tensor.byte_begin -= 4;
      tensor.byte_end -= 4;
    }),
    { ...refused, message: /overlap/ },
  );
  for (const element_end of [0, -1]) {
    t.throws(
      damage((tensor) => {
        tensor.byte_end = tensor.byte_begin + 4 * element_end;
        tensor.element_end = tensor.element_begin + element_end;
      }),
      { ...refused, message: /has -?\d bytes for -?\d/ },
    );
  }
  t.throws(
    damage((tensor) => {
      tensor.byte_end += 4;
    }),
    { ...refused, message: /has 32 bytes for 28/ },
  );
  t.throws(
    damage((_, file) => {
      file.bytes -= 4;
    }),
    { ...refused, message: /ends at byte/ },
  );
});

t.test('another optimizer has other states, and a frozen parameter has its weights alone', async (t) => {
  const pieces: Piece[] = [
    ['a', 0, 100],
    ['b', 0, 7],
  ];
  const lion: WholeState = { params, states: ['master', 'exp_avg'] };
  const sgd: WholeState = { params, states: ['master'] };
  t.doesNotThrow(() => checkCoverage(lion, [shard('s0', pieces, ['master', 'exp_avg'])]));
  t.doesNotThrow(() => checkCoverage(sgd, [shard('s0', pieces, ['master'])]));
  t.throws(() => checkCoverage(lion, [shard('s0', pieces)]), { ...refused, message: /exp_avg_sq\/a/ });
  t.throws(() => checkCoverage(adamw, [shard('s0', pieces, ['master', 'exp_avg'])]), refused);

  const frozen = { ...adamw, params: params.map((param) => ({ ...param, frozen: param.name === 'a' })) };
  const weights = shard('s0', [['a', 0, 100]], ['master']);
  const trained = shard('s1', [['b', 0, 7]]);
  t.doesNotThrow(() => checkCoverage(frozen, [weights, trained]));
  t.throws(() => checkCoverage(adamw, [weights, trained]), { ...refused, message: /exp_avg\/a/ });
  t.throws(() => checkCoverage(frozen, [shard('s0', pieces)]), { ...refused, message: /exp_avg\/a/ });
});
