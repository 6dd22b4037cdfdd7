import { ZerofleetError } from '../../contracts/index.js';
import { FairQueue } from './fair-queue.js';
import { ownBuffers } from './messages.js';
import { PoolThread, type Task, type ThreadOptions } from './pool-thread.js';
import type { ReadBytes, TaskTable } from './serve-tasks.js';

export interface ThreadPoolOptions extends ThreadOptions {
  /** Maximum of threads. They start on demand. */
  threads: number;
}

interface TaskOptions<I> {
  /** Owners take turns; one of them can use all threads but one. */
  owner?: string;
  /** Reads bytes for the task. */
  read?: ReadBytes;
  /** An aborted task is not begun; one in progress goes on. */
  signal?: AbortSignal;
  /** Returns the memory to transfer to the thread; by default that of the input's own fields. */
  transferOf?: (input: I) => ArrayBuffer[];
}

type Input<F> = F extends (input: infer I, ...rest: never[]) => unknown ? I : never;
type Output<F> = F extends (...args: never[]) => infer R ? Awaited<R> : never;

/**
 * Pool of threads that run the tasks of a table, one at a time each, within limits of memory and time. A task
 * that exceeds one ends together with its thread, which is replaced; other tasks continue.
 */
export class ThreadPool<Tasks extends TaskTable> {
  private readonly waiting: FairQueue<Task>;
  private readonly threads = new Set<PoolThread>();
  private closed = false;

  constructor(private readonly options: ThreadPoolOptions) {
    this.waiting = new FairQueue(options.threads - 1);
  }

  /**
   * Runs a task. Typed arrays among the fields of the input that fill their memory are transferred to the
   * thread and unusable afterwards.
   * @param input or a function that reads it once a thread is free: what waits then holds no memory
   * @throws errors of the task and of the function; `options.limited` for a limit; ZerofleetError `shutting_down`; the
   *   signal's reason
   */
  run<Name extends keyof Tasks & string>(
    name: Name,
    input: Input<Tasks[Name]> | (() => Promise<Input<Tasks[Name]>>),
    { owner = '', read, signal, transferOf = ownBuffers }: TaskOptions<Input<Tasks[Name]>> = {},
  ): Promise<Output<Tasks[Name]>> {
    return new Promise((resolve, reject) => {
      this.waiting.add(owner, {
        name,
        input: () => (typeof input === 'function' ? (input as () => unknown)() : input),
        transferOf: (loaded) => transferOf(loaded as Input<Tasks[Name]>),
        read,
        signal,
        resolve: (value) => resolve(value as Output<Tasks[Name]>),
        reject,
      });
      this.dispatch();
    });
  }

  /** Ends the threads, even if they are busy. Idempotent. */
  async close(): Promise<void> {
    this.closed = true;
    this.dispatch();
    await Promise.all([...this.threads].map((thread) => thread.end(closedError())));
  }

  private dispatch(): void {
    if (this.closed) for (const task of this.waiting.clear()) task.reject(closedError());
    for (let thread = this.free(); thread !== null; thread = this.free()) {
      const next = this.waiting.take();
      if (next === null) return;
      const { owner, item } = next;
      if (item.signal?.aborted) {
        this.waiting.release(owner);
        item.reject(item.signal.reason);
      } else void this.carryOut(thread, owner, item);
    }
  }

  private async carryOut(thread: PoolThread, owner: string, task: Task): Promise<void> {
    await thread.run(task);
    this.waiting.release(owner);
    this.dispatch();
  }

  /** Returns an idle thread, or starts one below the maximum. */
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
}

function closedError(): ZerofleetError {
  return new ZerofleetError('shutting_down', 'the threads end because the process does');
}
