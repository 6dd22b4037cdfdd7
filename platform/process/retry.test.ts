import t from 'tap';
import { backoffMs, retry, waitOrAbort } from './retry.js';

const POLICY = { attempts: 10, first_delay_ms: 100, max_delay_ms: 1_000 };
const AT_ONCE = { attempts: 3, first_delay_ms: 1, max_delay_ms: 1 };
const HOUR_MS = 3_600_000;

t.test('pauses double up to the longest, each between a half and all of it', async (t) => {
  const pauses = (random: number) => [1, 2, 3, 4, 5, 60].map((n) => backoffMs(POLICY, n, () => random));
  t.strictSame(pauses(0), [50, 100, 200, 400, 500, 500]);
  t.strictSame(pauses(1), [100, 200, 400, 800, 1_000, 1_000]);
});

t.test('those who failed together come back at different times', async (t) => {
  t.ok(new Set(Array.from({ length: 20 }, () => backoffMs(POLICY, 3))).size > 1);
});

/** Something that fails `failures` times, and says so. */
function failing(failures: number) {
  const errors = Array.from({ length: failures }, (_, i) => new Error(`try ${i + 1}`));
  let tries = 0;
  const operation = async () => {
    tries += 1;
    const error = errors[tries - 1];
    if (error) throw error;
    return 'done';
  };
  return { operation, errors, tries: () => tries };
}

t.test('it is tried until it succeeds, and each failure is told', async (t) => {
  const { operation, errors, tries } = failing(2);
  const told: unknown[] = [];
  const result = await retry(operation, AT_ONCE, {
    retryable: () => true,
    onRetry: (error, attempt) => told.push([error, attempt]),
  });
  t.equal(result, 'done');
  t.equal(tries(), 3);
  t.strictSame(told, [
    [errors[0], 1],
    [errors[1], 2],
  ]);
});

t.test('the last error is thrown when the tries are used up', async (t) => {
  const { operation, errors, tries } = failing(4);
  await t.rejects(retry(operation, AT_ONCE, { retryable: () => true }), errors[2]!);
  t.equal(tries(), 3);
});

t.test('what another try can not help is thrown at once', async (t) => {
  const { operation, errors, tries } = failing(2);
  await t.rejects(retry(operation, AT_ONCE, { retryable: (error) => error !== errors[0] }), errors[0]!);
  t.equal(tries(), 1);
});

t.test('nobody tries again who was told to stop, before or while it waits', async (t) => {
  const before = failing(2);
  const options = { retryable: () => true, signal: AbortSignal.abort() };
  await t.rejects(retry(before.operation, AT_ONCE, options), before.errors[0]!);
  t.equal(before.tries(), 1);
  const stop = new AbortController();
  const while_waiting = failing(2);
  const long = { ...AT_ONCE, first_delay_ms: HOUR_MS, max_delay_ms: HOUR_MS };
  await t.rejects(
    retry(while_waiting.operation, long, {
      retryable: () => true,
      signal: stop.signal,
      onRetry: () => setImmediate(() => stop.abort()),
    }),
    while_waiting.errors[0]!,
  );
  t.equal(while_waiting.tries(), 1);
});

t.test('a pause ends with its time or its signal', async (t) => {
  await waitOrAbort(1);
  await waitOrAbort(1, new AbortController().signal);
  await waitOrAbort(HOUR_MS, AbortSignal.abort());
  t.pass('each has come back');
});
