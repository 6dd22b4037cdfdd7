/** Requests to the object store that one rank has under way at once. */
export const PARALLEL_FETCHES = 4;

/** Does the work for every item, for at most `lanes` of them at a time. */
export async function inParallel<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const lane = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
