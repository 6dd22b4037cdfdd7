import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { withoutCommit } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { KeyedRequest, RequestRepeats } from '../../state/index.js';

interface CopiesDeps {
  store: RequestRepeats;
  log: Pick<Logger, 'warn'>;
}

/** An object or folder of a source that is to become a record of a project. */
interface CopyTask<T> {
  project: string;
  /** Identifies the source and its version; equal keys share one copy. */
  key: object;
  /** Returns the record of an earlier copy, or null. */
  known(): Promise<T | null>;
  make(): Promise<T>;
}

/** Lease of a copy. A live server renews it; the copy of a dead server is released when it expires. */
const LEASE_MS = 30_000;
/** Poll interval for a copy in progress at another request. */
const POLL_MS = 250;
/** Maximum length of a record's name. */
const MAX_NAME = 100;

/**
 * Copies of URIs that jobs refer to. Each source version is copied once, however many requests on any number of servers
 * need it: one request copies, the others wait. A copy continues when its client disconnects, because the client will
 * retry.
 */
export class Copies {
  private readonly running = new Set<Promise<unknown>>();

  constructor(private readonly deps: CopiesDeps) {}

  /**
   * Returns the record once the copy is complete.
   * @param signal ends the waiting, not the copy
   * @throws errors of `make`; the signal's reason
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
      await sleep(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  /** Waits for copies in progress; `make` must have been aborted before. */
  async close(): Promise<void> {
    await Promise.allSettled(this.running);
  }

  /** Starts a copy that continues independently of its waiters. */
  private begin<T>({ key, make }: CopyTask<T>, lease: KeyedRequest): Promise<T> {
    const { store, log } = this.deps;
    const keep = () =>
      store
        .keepRequest(lease, LEASE_MS)
        .catch((err: unknown) => log.warn({ err, key }, 'copy lease not renewed'));
    const timer = setInterval(keep, LEASE_MS / 3);
    const work = make().finally(async () => {
      clearInterval(timer);
      await store
        .endRequest(lease, null)
        .catch((err: unknown) => log.warn({ err, key }, 'copy lease not released'));
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

/** Last part of a URI, as a display name. */
export function nameOf(uri: string): string {
  return [...(withoutCommit(uri).split('/').at(-1) ?? '')].slice(0, MAX_NAME).join('');
}
