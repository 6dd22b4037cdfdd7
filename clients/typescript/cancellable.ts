/**
 * An async generator that its consumer can leave at any time. A plain async generator queues `return()` and `throw()`
 * behind a pending `next()`, which may wait for the server for hours. Here both first abort the generator's signal. A
 * pending `next()` then ends with the value given to `return()`, or rejects with the error given to `throw()`.
 * @param generate rejects with the signal's reason when the signal is aborted, and frees its resources in `finally`
 * @param signal ends the generator, which then rejects with the signal's reason
 */
export function cancellable<T, R>(
  generate: (signal: AbortSignal) => AsyncGenerator<T, R>,
  signal?: AbortSignal,
): AsyncGenerator<T, R> {
  const work = new AbortController();
  let end: { value: R | PromiseLike<R> } | undefined;
  async function* run(): AsyncGenerator<T, R> {
    const abort = () => work.abort(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort, { once: true });
    try {
      return yield* generate(work.signal);
    } catch (error) {
      if (end === undefined || error !== end) throw error;
      return end.value;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }
  const generator = run();
  const [finish, fail] = [generator.return.bind(generator), generator.throw.bind(generator)];
  return Object.assign(generator, {
    return(value: R | PromiseLike<R>) {
      end ??= { value };
      work.abort(end);
      return finish(value);
    },
    throw(error: unknown) {
      work.abort(error);
      return fail(error);
    },
  });
}
