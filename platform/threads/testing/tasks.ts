/** Tasks of the pool's tests. */
import { threadId } from 'node:worker_threads';
import { ZerofleetError } from '../../../contracts/index.js';
import { type ReadBytes, serveTasks } from '../serve-tasks.js';

export type TestTasks = typeof tasks;

const tasks = {
  thread: () => threadId,
  reverse: ({ bytes }: { bytes: Uint8Array }) => ({ bytes: Uint8Array.from(bytes).reverse() }),
  refuse: ({ line }: { line: number }) => {
    throw new ZerofleetError('dataset_line_invalid', `line ${line}`, { details: { line } });
  },
  /** Computes until the thread is ended. */
  spin: () => {
    for (;;);
  },
  /** Regular expression with exponential backtracking. */
  backtrack: ({ text }: { text: string }) => /^(a+)+$/.test(text),
  hoard: () => {
    const kept: number[][] = [];
    for (;;) kept.push(new Array(1000).fill(kept.length + 0.5));
  },
  exit: () => process.exit(3),
  /** Sums `count` bytes, read one by one. */
  sum: async ({ count }: { count: number }, read: ReadBytes) => {
    let sum = 0;
    for (let at = 0; at < count; at++) sum += (await read(at, at + 1))[0] ?? 0;
    return sum;
  },
};

serveTasks(tasks);
