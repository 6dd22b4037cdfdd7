import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../platform/logging/logging.js';
import type { KeyedRequest, RequestRepeats } from '../../state/index.js';

export interface CopiesDeps {
  store: RequestRepeats;
  log: Pick<Logger, 'warn'>;
}

/** Something in a bucket, as it is, that has to become a record of a project. */
export interface CopyTask<T> {
  project: string;
  /** Says what it is, and in which version; equal keys are one copy. */
  key: object;
  /** What was copied from it before; null for nothing. */
  known(): Promise<T | null>;
  make(): Promise<T>;
}

/** How long a copy stays with a server that has died; a living one says again and again that it is at work. */
const LEASE_MS = 30_000;
/** Between two looks at a copy that another request makes. */
const LOOK_MS = 250;
/** Of a record's name. */
const MAX_NAME = 100;

/**
 * Copies of what jobs name by URI. Each thing, as it is, is copied once, however many requests name it at the same time and to
 * whichever servers: one makes the copy, the others wait for it. A copy goes on when its client goes away, for the client asks again.
 */
export class Copies {
  private readonly running = new Set<Promise<unknown>>();

  constructor(private readonly deps: CopiesDeps) {}

  /**
   * The record, once it is there.
   * @param signal ends the waiting, not the copy
   * @throws what `make` throws; the signal's reason
   */
  async copyOf<T>(task: CopyTask<T>, signal: AbortSignal): Promise<T> {
    const { store } = this.deps;
    const lease = leaseOf(task);
    for (;;) {
      const { state } = await store.beginRequest(lease, LEASE_MS);
      const known = await task.known();
      if (state === 'begun') {
        if (known === null) return wait(this.begin(task, lease), signal);
        await store.endRequest(lease, null);
      }
      if (known !== null) return known;
      await sleep(LOOK_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  /** Waits for what is under way; what `make` does was told to end before. */
  async close(): Promise<void> {
    await Promise.allSettled(this.running);
  }

  /** Begins a copy, which goes on whoever waits for it. */
  private begin<T>({ key, make }: CopyTask<T>, lease: KeyedRequest): Promise<T> {
    const { store, log } = this.deps;
    const keep = () =>
      store.keepRequest(lease, LEASE_MS).catch((err: unknown) => log.warn({ err, key }, 'copy not kept'));
    const timer = setInterval(keep, LEASE_MS / 3);
    const work = make().finally(async () => {
      clearInterval(timer);
      await store.endRequest(lease, null).catch((err: unknown) => log.warn({ err, key }, 'copy not ended'));
    });
    this.running.add(work);
    work
      .catch((err: unknown) => log.warn({ err, key }, 'not copied'))
      .finally(() => this.running.delete(work));
    return work;
  }
}

function wait<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
    if (signal.aborted) leave();
  });
}

function leaseOf({ project, key }: CopyTask<unknown>): KeyedRequest {
  return {
    scope: `${project}:copyObject`,
    key: JSON.stringify(key),
    body_hash: '',
    token: randomUUID(),
  };
}

/** The last part of a URI, as a name for people. */
export function nameOf(uri: string): string {
  return [...(uri.split('/').at(-1) ?? '')].slice(0, MAX_NAME).join('');
}
