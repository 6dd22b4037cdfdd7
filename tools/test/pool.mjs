/**
 * Calls asynchronous functions in order with limited concurrency.
 * @param {(() => Promise<T>)[]} tasks
 * @param {number} atOnce
 * @returns {Promise<T[]>} in the order of the tasks
 * @template T
 */
export async function runPool(tasks, atOnce) {
  const results = [];
  const waiting = tasks.entries();
  const work = async () => {
    for (const [index, task] of waiting) results[index] = await task();
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}
