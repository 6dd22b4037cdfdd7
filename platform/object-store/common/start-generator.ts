/**
 * Starts a generator that holds a file or a connection. `return()` on a generator that has not started skips
 * its `finally` block, so the file or connection would stay open.
 * @param generator yields once inside its `try` block before its first value; that yield is consumed here
 */
export async function startGenerator<T>(generator: AsyncGenerator<T>): Promise<AsyncGenerator<T>> {
  await generator.next();
  return generator;
}
