import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dataset } from '../../contracts/index.js';
import type {
  DatasetRecords,
  KeyedRequest,
  Projects,
  RequestRepeats,
} from '../../platform/job-store/port.js';
import { requireStorage } from '../access/storage-quota.js';
import { untilAborted } from '../http/long-request.js';
import type { WantedCopy } from '../jobs/find-data.js';
import { type StoreDatasetDeps, storeDataset } from './store-dataset.js';
import { tooLarge } from './upload.js';

type CopyStore = Pick<DatasetRecords, 'putDataset' | 'findDatasetCopy'> &
  Pick<Projects, 'getQuota' | 'getUse'> &
  RequestRepeats;

export interface DatasetCopiesDeps extends Omit<StoreDatasetDeps, 'store'> {
  store: CopyStore;
  /** Ends the copies that are under way. */
  closing: AbortSignal;
}

/** How long a copy stays with a server that has died; a living one says again and again that it is at work. */
const LEASE_MS = 30_000;
/** Between two looks at a copy that another request makes. */
const LOOK_MS = 250;
/** Of a dataset's name. */
const MAX_NAME = 100;

/**
 * Copies of objects that jobs name. Each object, as it is, is copied once, however many requests name it at the same time and to
 * whichever servers: one makes the copy, the others wait for it. A copy goes on when its client goes away, for the client asks again.
 */
export class DatasetCopies {
  private readonly running = new Set<Promise<unknown>>();

  constructor(private readonly deps: DatasetCopiesDeps) {}

  /**
   * The dataset of an object, once it is there.
   * @param signal ends the waiting, not the copy
   * @throws ZerofleetError those of a dataset that is registered; the signal's reason
   */
  async datasetOf(project: string, copy: WantedCopy, signal: AbortSignal): Promise<Dataset> {
    const { store } = this.deps;
    const object = { uri: copy.uri, format: copy.format, etag: copy.object.etag, bytes: copy.object.bytes };
    const lease = leaseOf(project, object);
    for (;;) {
      const { state } = await store.beginRequest(lease, LEASE_MS);
      const known = await store.findDatasetCopy(project, object);
      if (state === 'begun') {
        if (known === null) return this.wait(this.copy(project, copy, lease), signal);
        await store.endRequest(lease, null);
      }
      if (known !== null) return known;
      await sleep(LOOK_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  /** Waits for what is under way; `closing` was aborted before. */
  async close(): Promise<void> {
    await Promise.allSettled(this.running);
  }

  /** Begins a copy, which goes on whoever waits for it. */
  private copy(project: string, copy: WantedCopy, lease: KeyedRequest): Promise<Dataset> {
    const { store, log } = this.deps;
    const keep = () =>
      store
        .keepRequest(lease, LEASE_MS)
        .catch((err: unknown) => log.warn({ err }, 'copy of an object not kept'));
    const timer = setInterval(keep, LEASE_MS / 3);
    const work = this.store(project, copy).finally(async () => {
      clearInterval(timer);
      await store
        .endRequest(lease, null)
        .catch((err: unknown) => log.warn({ err }, 'copy of an object not ended'));
    });
    this.running.add(work);
    work
      .catch((err: unknown) => log.warn({ err, uri: copy.uri }, 'object not copied'))
      .finally(() => this.running.delete(work));
    return work;
  }

  private async store(project: string, { uri, format, object }: WantedCopy): Promise<Dataset> {
    const { store, closing, limits } = this.deps;
    if (object.bytes > limits.dataset_bytes) throw tooLarge(limits.dataset_bytes);
    await requireStorage(store, project, String(object.bytes));
    const head = { project, name: nameOf(uri), format, source: { uri, etag: object.etag } };
    return storeDataset(this.deps, head, untilAborted(object.read(), closing));
  }

  private wait(work: Promise<Dataset>, signal: AbortSignal): Promise<Dataset> {
    return new Promise((resolve, reject) => {
      const leave = () => reject(signal.reason);
      signal.addEventListener('abort', leave, { once: true });
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
      if (signal.aborted) leave();
    });
  }
}

function leaseOf(project: string, object: object): KeyedRequest {
  const key = JSON.stringify(object);
  return { scope: `${project}:copyObject`, key, body_hash: '', token: randomUUID() };
}

/** The last part of the key. */
function nameOf(uri: string): string {
  return [...(uri.split('/').at(-1) ?? '')].slice(0, MAX_NAME).join('');
}
