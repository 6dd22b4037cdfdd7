import { ZerofleetError } from '../../contracts/index.js';
import { FairQueue } from './fair-queue.js';
import { ownBuffers } from './messages.js';
import { PoolThread, type Task, type ThreadOptions } from './pool-thread.js';
import type { ReadBytes, TaskTable } from './serve-tasks.js';

export interface ThreadPoolOptions extends ThreadOptions {
  /** Most threads at once. They begin when there is something to do. */
  threads: number;
}

export interface TaskOptions {
  /** Owners take turns; one of them can have all threads but one. */
  owner?: string;
  /** Answers what the task reads. */
  read?: ReadBytes;
  /** The memory that moves to the thread; by default that of the input's own fields. */
  transfer?: ArrayBuffer[];
}

type Input<F> = F extends (input: infer I, ...rest: never[]) => unknown ? I : never;
type Output<F> = F extends (...args: never[]) => infer R ? Awaited<R> : never;

/**
 * Threads that do the tasks of a table, one at a time each, within limits of memory and time. A task that goes beyond one ends with its
 * thread, and nothing else does: another thread takes its place.
 */
export class ThreadPool<Tasks extends TaskTable> {
  private readonly waiting = new FairQueue<Task>();
  private readonly threads = new Set<PoolThread>();
  private readonly running = new Map<string, number>();
  private closed = false;

  constructor(private readonly options: ThreadPoolOptions) {}

  /**
   * Typed arrays among the fields of the input that fill their memory move to the thread: the caller has them no more.
   * @throws what the task throws; what `options.limited` makes of a limit; ZerofleetError `shutting_down`
   */
  run<Name extends keyof Tasks & string>(
    name: Name,
    input: Input<Tasks[Name]>,
    { owner = '', read, transfer = ownBuffers(input) }: TaskOptions = {},
  ): Promise<Output<Tasks[Name]>> {
    return new Promise((resolve, reject) => {
      const settle = { resolve: (value: unknown) => resolve(value as Output<Tasks[Name]>), reject };
      this.waiting.add(owner, { name, input, transfer, read, ...settle });
      this.dispatch();
    });
  }

  /** Ends the threads, whatever they are doing. Idempotent. */
  async close(): Promise<void> {
    this.closed = true;
    this.dispatch();
    await Promise.all([...this.threads].map((thread) => thread.end(closedError())));
  }

  private dispatch(): void {
    if (this.closed) for (const task of this.waiting.clear()) task.reject(closedError());
    for (let thread = this.free(); thread !== null; thread = this.free()) {
      const next = this.waiting.take((owner) => this.mayRun(owner));
      if (next === null) return;
      void this.carryOut(thread, next.owner, next.item);
    }
  }

  private async carryOut(thread: PoolThread, owner: string, task: Task): Promise<void> {
    this.count(owner, 1);
    await thread.run(task);
    this.count(owner, -1);
    this.dispatch();
  }

  /** A thread without a task; a new one is made where there may be more. */
  private free(): PoolThread | null {
    if (this.waiting.isEmpty) return null;
    for (const thread of this.threads) if (!thread.isBusy) return thread;
    if (this.threads.size >= this.options.threads) return null;
    const thread = new PoolThread(this.options, () => {
      this.threads.delete(thread);
      this.dispatch();
    });
    this.threads.add(thread);
    return thread;
  }

  private mayRun(owner: string): boolean {
    const { threads } = this.options;
    return owner === '' || (this.running.get(owner) ?? 0) < Math.max(1, threads - 1);
  }

  private count(owner: string, by: 1 | -1): void {
    const count = (this.running.get(owner) ?? 0) + by;
    if (count === 0) this.running.delete(owner);
    else this.running.set(owner, count);
  }
}

function closedError(): ZerofleetError {
  return new ZerofleetError('shutting_down', 'the threads end because the process does');
}
