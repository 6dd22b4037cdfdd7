import t from 'tap';
import { backoffMs, retry, waitOrAbort } from './retry.js';

const POLICY = { attempts: 10, first_delay_ms: 100, max_delay_ms: 1_000 };
const AT_ONCE = { attempts: 3, first_delay_ms: 1, max_delay_ms: 1 };
const HOUR_MS = 3_600_000;

t.test('delays double up to the maximum, each with jitter between half and all of it', async (t) => {
  const pauses = (random: number) => [1, 2, 3, 4, 5, 60].map((n) => backoffMs(POLICY, n, () => random));
  t.strictSame(pauses(0), [50, 100, 200, 400, 500, 500]);
  t.strictSame(pauses(1), [100, 200, 400, 800, 1_000, 1_000]);
});

t.test('callers that failed together retry at different times', async (t) => {
  t.ok(new Set(Array.from({ length: 20 }, () => backoffMs(POLICY, 3))).size > 1);
});

/** Returns an operation that fails `failures` times. */
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

t.test('retries until success, and reports each failure', async (t) => {
  const { operation, errors, tries } = failing(2);
  const reported: unknown[] = [];
  const result = await retry(operation, AT_ONCE, {
    retryable: () => true,
    onRetry: (error, attempt) => reported.push([error, attempt]),
  });
  t.equal(result, 'done');
  t.equal(tries(), 3);
  t.strictSame(reported, [
    [errors[0], 1],
    [errors[1], 2],
  ]);
});

t.test('throws the last error after the last attempt', async (t) => {
  const { operation, errors, tries } = failing(4);
  await t.rejects(retry(operation, AT_ONCE, { retryable: () => true }), errors[2]!);
  t.equal(tries(), 3);
});

t.test('throws a permanent error at once', async (t) => {
  const { operation, errors, tries } = failing(2);
  await t.rejects(retry(operation, AT_ONCE, { retryable: (error) => error !== errors[0] }), errors[0]!);
  t.equal(tries(), 1);
});

t.test('aborts before or during the delay', async (t) => {
  const before = failing(2);
  const options = { retryable: () => true, signal: AbortSignal.abort() };
  await t.rejects(retry(before.operation, AT_ONCE, options), before.errors[0]!);
  t.equal(before.tries(), 1);
  const stop = new AbortController();
  const whileWaiting = failing(2);
  const long = { ...AT_ONCE, first_delay_ms: HOUR_MS, max_delay_ms: HOUR_MS };
  await t.rejects(
    retry(whileWaiting.operation, long, {
      retryable: () => true,
      signal: stop.signal,
      onRetry: () => setImmediate(() => stop.abort()),
    }),
    whileWaiting.errors[0]!,
  );
  t.equal(whileWaiting.tries(), 1);
});

t.test('a wait ends with its time or its signal', async (t) => {
  await waitOrAbort(1);
  await waitOrAbort(1, new AbortController().signal);
  await waitOrAbort(HOUR_MS, AbortSignal.abort());
  t.pass('each has returned');
});
