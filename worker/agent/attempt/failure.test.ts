/** Tests of the description of a rank that ended. */
import t from 'tap';
import type { RankCause } from '../supervisor/rank.js';
import { describeRankEnd, rootCauseOf } from './failure.js';

const describe = (cause: RankCause, output: string[] = []) =>
  describeRankEnd(1, 'node-7', { ...cause, step: 12, output });

t.test('each end of a rank has its own description, with rank, host, step and output', (t) => {
  t.match(describe({ kind: 'exited', code: 3 }, ['first', 'last line']), {
    code: 'rank_lost',
    category: 'hardware',
    retryable: true,
    deterministic: false,
    rank: 1,
    host: 'node-7',
    step: 12,
    exit_code: 3,
    signal: null,
    output: ['first', 'last line'],
    message: /^rank 1 on node-7 exited with code 3: first\nlast line$/,
  });
  t.match(describe({ kind: 'signalled', signal: 'SIGSEGV' }), {
    code: 'rank_lost',
    exit_code: null,
    signal: 'SIGSEGV',
    message: /SIGSEGV/,
  });
  t.match(describe({ kind: 'silent', silent_ms: 30_000 }), {
    code: 'rank_unresponsive',
    message: /30000 ms/,
  });
  t.match(describe({ kind: 'stuck', waiting: 3 }), { code: 'rank_unresponsive', message: /3 other ranks/ });
  t.match(describe({ kind: 'node_lost', message: 'the link broke' }), {
    code: 'node_lost',
    category: 'hardware',
    deterministic: false,
    message: /the link broke/,
  });
  t.match(describe({ kind: 'failed', error: { code: 'token_file_invalid', message: 'cut short' } }), {
    code: 'native_error',
    message: 'token_file_invalid: cut short',
    step: 12,
    deterministic: true,
  });
  t.end();
});

t.test('a rank that the kernel killed for memory is retried; a rank that allocates too much is not', (t) => {
  t.match(describe({ kind: 'out_of_memory', signal: 'SIGKILL', evidence: 'likely' }), {
    code: 'oom_killed',
    category: 'oom',
    signal: 'SIGKILL',
    deterministic: false,
    message: /because memory ran out \(likely\)/,
  });
  t.match(describe({ kind: 'failed', error: { code: 'out_of_memory', message: 'm' } }), {
    code: 'out_of_memory',
    deterministic: true,
  });
  t.end();
});

t.test('an error that every rank has is assigned to no rank', (t) => {
  const error = describe({ kind: 'failed', error: { code: 'diverged', message: 'm' } });
  t.match(error, { code: 'diverged', rank: null });
  t.notOk('host' in error);
  t.end();
});

t.test('an event has the facts of an error without the retry decision', (t) => {
  const data = rootCauseOf(describe({ kind: 'exited', code: 3 }, ['x']));
  t.strictSame(Object.keys(data).sort(), [
    'code',
    'exit_code',
    'host',
    'message',
    'output',
    'rank',
    'signal',
    'step',
  ]);
  t.end();
});
