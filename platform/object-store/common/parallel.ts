/**
 * Runs `work` on each item, at most `limit` at once; items are requested only as fast as they are processed.
 * The first failure stops the requests and closes the items. The promise rejects with it when all started
 * work has ended.
 * @param onFailure called at once at the first failure, to abort work in progress
 */
export async function forEachParallel<T>(
  items: AsyncIterator<T>,
  limit: number,
  work: (item: T, index: number) => Promise<void>,
  onFailure: () => void = () => undefined,
): Promise<void> {
  let count = 0;
  let failure: { error: unknown } | undefined;

  async function worker(): Promise<void> {
    while (!failure) {
      const next = await items.next();
      if (next.done || failure) return;
      const index = count;
      count += 1;
      await work(next.value, index);
    }
  }

  const fail = (error: unknown) => {
    if (failure) return;
    failure = { error };
    onFailure();
  };
  await Promise.all(Array.from({ length: limit }, () => worker().catch(fail)));
  if (!failure) return;
  await items.return?.().catch(() => undefined);
  throw (failure as { error: unknown }).error;
}
