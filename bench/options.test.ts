import t from 'tap';
import { count, counts, oneOf, onOff, optionalCount, path, readOptions, someOf } from './options.js';

const OPTIONS = {
  config: oneOf(['small', 'large'], 'small'),
  steps: count(12),
  threads: counts(1, 2),
  kernels: someOf(['a', 'b', 'c'], 'a'),
  micro_batch: optionalCount(),
  peer: path(),
  keep_less: onOff(),
};
const NOT_GIVEN = { micro_batch: null, peer: null, keep_less: false };

t.test('missing options have their defaults', async (t) => {
  t.strictSame(readOptions(OPTIONS, []), {
    config: 'small',
    steps: 12,
    threads: [1, 2],
    kernels: ['a'],
    ...NOT_GIVEN,
  });
});

t.test('every option can be given', async (t) => {
  const args = ['--config', 'large', '--steps', '3', '--threads', '4,8', '--kernels', 'all'];
  args.push('--micro-batch', '6', '--peer', '/usr/bin/python3', '--keep-less');
  t.strictSame(readOptions(OPTIONS, args), {
    config: 'large',
    steps: 3,
    threads: [4, 8],
    kernels: ['a', 'b', 'c'],
    micro_batch: 6,
    peer: '/usr/bin/python3',
    keep_less: true,
  });
});

t.test('invalid values are refused with the valid ones', async (t) => {
  const refused: [string[], RegExp][] = [
    [['--config', 'huge'], /^--config: 'huge' is none of small, large$/],
    [['--steps', '0'], /^--steps: '0' is not a positive whole number$/],
    [['--threads', '1,x'], /^--threads: 'x' is not/],
    [['--kernels', 'a,d'], /^--kernels: 'd' is none of a, b, c$/],
    [['--micro-batch', '1.5'], /^--micro-batch: '1.5' is not a positive whole number$/],
    [['--keep-less=yes'], /--keep-less/],
    [['--step', '3'], /--step/],
    [['large'], /large/],
  ];
  for (const [args, message] of refused) t.throws(() => readOptions(OPTIONS, args), { message });
});
