import { Worker } from 'node:worker_threads';
import { type FromThread, ownBuffers, receivedError, sentError, type ToThread } from './messages.js';
import type { ReadBytes } from './serve-tasks.js';

type Limit = 'memory' | 'time';

export interface ThreadOptions {
  /** Main module of the threads, which calls serveTasks(): a path, or a URL. */
  module: string | URL;
  /** `workerData` of every thread. */
  setup?: unknown;
  /** JavaScript heap of one thread; file contents count elsewhere. */
  heap_mb: number;
  /**
   * Maximum compute time of one task. Time waiting for bytes does not count, so the load of the machine
   * hardly matters.
   */
  task_ms: number;
  /** Idle time after which a thread ends and frees its memory. */
  idle_ms: number;
  /** Returns the error of a task that exceeded a limit. */
  limited(limit: Limit, task: string): Error;
}

/** Task with its promise. */
export interface Task {
  name: string;
  /**
   * Returns the input, or reads it: called when the thread begins with the task, so that waiting tasks hold no memory.
   */
  input(): unknown;
  /** Memory of the input that is transferred to the thread. */
  transferOf(input: unknown): ArrayBuffer[];
  read: ReadBytes | undefined;
  signal: AbortSignal | undefined;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Thread of a pool with its current task. */
export class PoolThread {
  private readonly worker: Worker;
  private task: { given: Task; done(): void } | null = null;
  private timer: NodeJS.Timeout | undefined;
  private ended = false;

  /** @param onEnd called once, when the thread accepts no more tasks */
  constructor(
    private readonly options: ThreadOptions,
    private readonly onEnd: () => void,
  ) {
    const { module, setup, heap_mb } = options;
    // Process settings, such as a test runner's loaders, must not run again in every thread.
    this.worker = new Worker(module, {
      workerData: setup,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heap_mb },
    });
    this.worker.on('message', (message: FromThread) => this.hear(message));
    this.worker.on('error', (error: NodeJS.ErrnoException) =>
      this.fail(
        error.code === 'ERR_WORKER_OUT_OF_MEMORY'
          ? options.limited('memory', this.task?.given.name ?? '')
          : error,
      ),
    );
    this.worker.on('exit', (code) => this.fail(new Error(`a thread exited with code ${code}`)));
  }

  get isBusy(): boolean {
    return this.task !== null;
  }

  /** Runs the task; resolves when the thread is free, or gone. */
  run(given: Task): Promise<void> {
    clearTimeout(this.timer);
    return new Promise((done) => {
      this.task = { given, done };
      void this.begin(given);
    });
  }

  private async begin(given: Task): Promise<void> {
    try {
      const input = await given.input();
      // The thread may have ended meanwhile.
      if (this.task?.given === given)
        this.say({ kind: 'task', name: given.name, input }, given.transferOf(input));
    } catch (error) {
      if (this.task?.given === given) this.settle(({ reject }) => reject(error as Error));
    }
  }

  /** Ends the thread at once; a task in progress fails with the error. */
  async end(error: Error): Promise<void> {
    this.fail(error);
    await this.worker.terminate();
  }

  /**
   * Schedules the next check for the time at which the task would exceed its limit if it computed
   * continuously.
   */
  private watch(begunMs: number): void {
    const { task_ms, limited } = this.options;
    if (this.task === null) return;
    const left = task_ms - (this.busyMs() - begunMs);
    if (left > 0) this.timer = setTimeout(() => this.watch(begunMs), Math.ceil(left));
    else void this.end(limited('time', this.task.given.name));
  }

  /** Returns the compute time of the thread. */
  private busyMs(): number {
    return this.worker.performance.eventLoopUtilization().active;
  }

  private hear(message: FromThread): void {
    if (message.kind === 'started') this.watch(this.busyMs());
    else if (message.kind === 'read') void this.answer(message);
    else if (message.kind === 'done') this.settle(({ resolve }) => resolve(message.value));
    else this.settle(({ reject }) => reject(receivedError(message.error)));
  }

  private async answer({ read, begin, end, file }: FromThread & { kind: 'read' }): Promise<void> {
    try {
      const from = this.task?.given.read;
      if (from === undefined) throw new Error('the task was given nothing to read');
      const found = await from(begin, end, file);
      // Small buffers may share memory with others; these are copied.
      const message = { kind: 'bytes', read, bytes: found } as const;
      this.say(message, ownBuffers(message));
    } catch (error) {
      this.say({ kind: 'failed', read, error: sentError(error) });
    }
  }

  private say(message: ToThread, transfer: ArrayBuffer[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private settle(tell: (task: Task) => void): void {
    const { task } = this;
    if (task === null) return;
    this.task = null;
    clearTimeout(this.timer);
    if (!this.ended)
      this.timer = setTimeout(() => void this.end(new Error('it had nothing to do')), this.options.idle_ms);
    tell(task.given);
    task.done();
  }

  private fail(error: Error): void {
    const first = !this.ended;
    this.ended = true;
    this.settle(({ reject }) => reject(error));
    clearTimeout(this.timer);
    if (first) this.onEnd();
  }
}
