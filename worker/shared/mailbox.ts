import { type Deferred, deferred } from './deferred.js';

/** Messages in their order, for one reader. */
export class Mailbox<T> {
  private readonly messages: T[] = [];
  private waiting: Deferred<T> | null = null;

  put(message: T): void {
    const { waiting } = this;
    this.waiting = null;
    if (waiting) waiting.resolve(message);
    else this.messages.push(message);
  }

  /** Returns the next message as soon as it is there. */
  async take(): Promise<T> {
    if (this.messages.length > 0) return this.messages.shift() as T;
    this.waiting ??= deferred<T>();
    return this.waiting.promise;
  }
}
