import { programPath } from '../platform/process/programs.js';
import { ThreadPool } from '../platform/threads/thread-pool.js';
import type { AskOptions } from './ask-url.js';
import { GraderFault } from './grader.js';
import { PythonPool, type PythonPoolOptions } from './python/python-pool.js';
import { type tasks as comparisons, tasks } from './similarity/tasks.js';

export interface RuntimeOptions {
  python: PythonPoolOptions;
  asking: AskOptions;
}

/** Lengths of texts whose comparison takes well below a millisecond: their sum and their product. */
const SHORT = { sum: 4000, product: 200_000 };
const COMPARE_MS = 10_000;
const HEAP_MB = 512;
const THREADS = 2;
const IDLE_MS = 10_000;

/** Processes and threads of graders, which graders of all projects share. */
export class GraderRuntime {
  readonly python: PythonPool;
  readonly asking: AskOptions;
  private readonly threads: ThreadPool<typeof comparisons>;

  constructor({ python, asking }: RuntimeOptions) {
    this.python = new PythonPool(python);
    this.asking = asking;
    this.threads = new ThreadPool({
      module: programPath('graders/similarity/thread-main'),
      threads: THREADS,
      heap_mb: HEAP_MB,
      task_ms: COMPARE_MS,
      idle_ms: IDLE_MS,
      limited: (limit) =>
        new GraderFault(
          'texts_too_complex',
          limit === 'time'
            ? `comparing the texts takes more than ${COMPARE_MS / 1000} s`
            : `comparing the texts takes more than ${HEAP_MB} MiB`,
        ),
    });
  }

  /** Compares short texts here, and long ones in a thread. @throws GraderFault; the signal's reason */
  compare<Name extends keyof typeof comparisons>(
    name: Name,
    input: Parameters<(typeof comparisons)[Name]>[0],
    { project, signal }: { project: string; signal: AbortSignal },
  ): Promise<number> | number {
    const [a, b] = [input.input.length, input.reference.length];
    if (a + b <= SHORT.sum && a * b <= SHORT.product)
      return (tasks[name] as (input: unknown) => number)(input);
    return this.threads.run(name, input as never, { owner: project, signal });
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await Promise.all([this.python.close(), this.threads.close()]);
  }
}
