/** Thread side of a thread pool. */
import { parentPort } from 'node:worker_threads';
import { type FromThread, ownBuffers, receivedError, sentError, type ToThread } from './messages.js';

/**
 * Reads bytes `[begin, end)` of the task's content from the caller.
 * @param file which file's, for a task of several files
 */
export type ReadBytes = (begin: number, end: number, file?: string) => Promise<Buffer>;

/**
 * Tasks by name. Inputs and results are copied between threads; a result's own typed arrays are transferred.
 */
export type TaskTable = Readonly<Record<string, (input: never, read: ReadBytes) => unknown>>;

/** Serves tasks sequentially until the pool ends this thread. */
export function serveTasks(tasks: TaskTable): void {
  const reads = new Map<number, { resolve(bytes: Buffer): void; reject(error: Error): void }>();
  let count = 0;
  const say = (message: FromThread, transfer: ArrayBuffer[] = []) =>
    parentPort?.postMessage(message, transfer);
  const read: ReadBytes = (begin, end, file) =>
    new Promise((resolve, reject) => {
      reads.set(count, { resolve, reject });
      say({ kind: 'read', read: count, begin, end, file });
      count += 1;
    });
  const run = async (name: string, input: unknown) => {
    try {
      const value = await tasks[name]?.(input as never, read);
      say({ kind: 'done', value }, ownBuffers(value));
    } catch (error) {
      say({ kind: 'error', error: sentError(error) });
    }
  };
  parentPort?.on('message', (message: ToThread) => {
    if (message.kind === 'task') {
      say({ kind: 'started' });
      void run(message.name, message.input);
      return;
    }
    const waiting = reads.get(message.read);
    reads.delete(message.read);
    if (message.kind === 'failed') waiting?.reject(receivedError(message.error));
    else waiting?.resolve(Buffer.from(message.bytes.buffer, message.bytes.byteOffset, message.bytes.length));
  });
}
