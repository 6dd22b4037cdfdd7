/** An attempt of a job without a job store and without processes, which writes down what is done with its checkpoints. */
import { pathToFileURL } from 'node:url';
import type { Test } from 'tap';
import type { Checkpoint } from '../../contracts/index.js';
import { checkpointsPrefix } from '../../platform/checkpoint/layout.js';
import { createLogger } from '../../platform/logging.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import type { AttemptContext } from '../agent/context.js';
import { StopRequests } from '../agent/stop-requests.js';
import { testSpec } from './start-message.js';

const log = createLogger({ level: 'silent', name: 'test' });

export interface NotedAttemptOptions {
  /** What the job store knows already. */
  recorded?: Checkpoint[];
  /** Called before each step by its name; what it throws becomes of the step. */
  before?: (step: string) => void;
}

/**
 * Job `job`, held in `epoch`, which keeps its last two checkpoints.
 * @returns what it did in which order, the events that it told, and what the job store has been told of, the newest first
 */
export async function notedAttempt(
  t: Test,
  epoch: number,
  { recorded = [], before = () => undefined }: NotedAttemptOptions = {},
) {
  const steps: string[] = [];
  const told: { type: string; data: Record<string, unknown> }[] = [];
  const note = (step: string) => {
    before(step);
    steps.push(step);
  };
  const store = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => store.close());
  const short = (key: string) => key.slice(checkpointsPrefix('job').length);
  const objects = new Proxy(store, {
    get(target, name: keyof ObjectStore) {
      if (name === 'put')
        return (...call: Parameters<ObjectStore['put']>) => {
          note(`put ${short(call[0])}`);
          return target.put(...call);
        };
      if (name === 'delete')
        return (keys: string[]) => {
          note(`delete ${short(keys[0] ?? '').split('/')[0]}`);
          return target.delete(keys);
        };
      if (name === 'abandonUploads') return async (prefix: string) => note(`abandon ${prefix}`);
      if (name === 'list')
        return (prefix: string) => {
          note('list');
          return target.list(prefix);
        };
      const value = target[name];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const jobStore = {
    listCheckpoints: async () => ({ data: recorded, next_cursor: null }),
    commitCheckpoint: async (
      job: string,
      epoch: number,
      checkpoint: Checkpoint,
      { save_request = -1 } = {},
    ) => {
      note(`record ${job} ${epoch} ${checkpoint.step} for ${save_request}`);
      recorded.unshift(checkpoint);
    },
    removeCheckpoint: async (_job: string, _epoch: number, id: string) => {
      note(`forget ${id}`);
      return true;
    },
    appendEvent: async (_job: string, _epoch: number, event: (typeof told)[number]) => {
      note(event.type);
      return told.push(event);
    },
  };
  const lease = {
    epoch,
    lost: new AbortController().signal,
    confirm: async () => note('confirm'),
    call: <T>(work: (job: string, epoch: number) => Promise<T>) => work('job', epoch),
  };
  const once = { attempts: 2, first_delay_ms: 1, max_delay_ms: 1 };
  const stops = new StopRequests();
  const ctx = {
    deps: { objects, store: jobStore, timing: { storage: once } },
    job: { id: 'job', spec: testSpec({ keep_last: 2 }) },
    lease,
    stops,
    log,
  } as unknown as AttemptContext;
  return { ctx, stops, steps, told, recorded, store };
}
