import { type ReadonlySignal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Fault, faultOf, isAborted } from './connection.js';

export interface Loaded<T> {
  /** The newest value; it stays while it is read again, and after an error. */
  value: ReadonlySignal<T | null>;
  fault: ReadonlySignal<Fault | null>;
  /** Reads it again, after a read that has begun; resolves when it was read or has failed. */
  reload(): Promise<void>;
  /** Puts a value in place of the one that was read, as an action has answered it. */
  set(value: T): void;
}

/** A server that does not answer is asked again. */
const RECONNECT_MS = 10_000;

/**
 * Reads something for a view, and again in an interval while the page is visible. A failure is shown; without an
 * interval the read is repeated only if the server did not answer.
 * @param deps of `read`: with others it begins anew
 * @param every_ms interval, which may change; 0 for none
 */
export function useLoaded<T>(
  read: (signal: AbortSignal) => Promise<T>,
  deps: readonly unknown[],
  { every_ms = 0 } = {},
): Loaded<T> {
  // The caller names what `read` depends on.
  const loader = useMemo(() => new Loader(read), deps);
  useEffect(() => {
    void loader.reload();
    return () => loader.close();
  }, [loader]);
  const interval = every_ms === 0 && loader.fault.value?.code === 'offline' ? RECONNECT_MS : every_ms;
  useEffect(() => {
    if (interval === 0) return;
    const timer = setInterval(() => document.hidden || void loader.reload(), interval);
    return () => clearInterval(timer);
  }, [loader, interval]);
  return loader;
}

class Loader<T> implements Loaded<T> {
  readonly value = signal<T | null>(null);
  readonly fault = signal<Fault | null>(null);
  private readonly closing = new AbortController();
  private running: Promise<void> | null = null;
  private following: Promise<void> | null = null;

  constructor(private readonly read: (signal: AbortSignal) => Promise<T>) {}

  /** A read that has begun may be older than what its caller has changed, so another one follows it. */
  reload(): Promise<void> {
    if (this.running === null) {
      this.running = this.run().finally(() => {
        this.running = null;
      });
      return this.running;
    }
    this.following ??= this.running.then(() => {
      this.following = null;
      return this.reload();
    });
    return this.following;
  }

  set(value: T): void {
    this.value.value = value;
  }

  close(): void {
    this.closing.abort();
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    try {
      const value = await this.read(signal);
      if (signal.aborted) return;
      this.value.value = value;
      this.fault.value = null;
    } catch (error) {
      if (signal.aborted || isAborted(error)) return;
      this.fault.value = faultOf(error);
    }
  }
}
