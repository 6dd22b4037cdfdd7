/** Attempt of a job without a job store and without processes, which records all operations on its checkpoints. */
import { pathToFileURL } from 'node:url';
import type { Test } from 'tap';
import type { Execution } from '../../contracts/execution.js';
import type { Checkpoint } from '../../contracts/index.js';
import { checkpointDirectory, checkpointKey, checkpointsPrefix } from '../../formats/checkpoint/layout.js';
import { createLogger } from '../../platform/logging/logging.js';
import { type AbandonOptions, type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import type { AttemptContext } from '../agent/attempt/context.js';
import { JobCheckpoints } from '../agent/attempt/job-checkpoints.js';
import { StopRequests } from '../agent/attempt/stop-requests.js';
import { testSpec } from './start-message.js';

/** Shape of the stored checkpoints. */
export const SHAPE = { numels: [10], ranks: 2 };
const EXECUTION = '2-a';
/** Errors of the previous attempt. */
const ERRORS = 3;

/** Returns the directory name of a save. `keyOf` returns its key. */
export const named = (step: number, execution: Execution = EXECUTION) =>
  checkpointDirectory({ step, execution, nonce: 'aaaaaaaa' });
export const keyOf = (directory: string) => checkpointKey('job', directory);

const log = createLogger({ level: 'silent', name: 'test' });

interface RecordedAttemptOptions {
  /** Records that already exist in the job store. */
  recorded?: Checkpoint[];
  /** Called before each step with its name; an error fails the step. */
  before?: (step: string) => void;
}

/**
 * Creates job `job`, held in execution 2-a, which keeps its last two checkpoints.
 * @returns the steps in order, the events, and the records of the job store, newest first
 */
export async function recordedAttempt(
  t: Test,
  { recorded = [], before = () => undefined }: RecordedAttemptOptions = {},
) {
  const steps: string[] = [];
  const events: { type: string; data: Record<string, unknown> }[] = [];
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
      if (name === 'abandonUploads')
        return async (prefix: string, { confirm }: AbandonOptions) => {
          await confirm?.();
          note(`abandon ${prefix}`);
        };
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
    listCheckpoints: async (_job: string, { limit = 20 } = {}) => ({
      data: recorded.slice(0, limit),
      next_cursor: null,
    }),
    commitCheckpoint: async (
      job: string,
      execution: Execution,
      checkpoint: Checkpoint,
      { save_request = -1 } = {},
    ) => {
      note(`record ${job} ${execution} ${checkpoint.step} for ${save_request}`);
      recorded.unshift(checkpoint);
    },
    rejectCheckpoint: async (_job: string, _execution: Execution, id: string) => {
      note(`reject ${id}`);
      for (const checkpoint of recorded) if (checkpoint.id === id) checkpoint.damaged = true;
    },
    removeCheckpoint: async (_job: string, _execution: Execution, id: string) => {
      note(`forget ${id}`);
      return true;
    },
    appendEvent: async (_job: string, _execution: Execution, event: (typeof events)[number]) => {
      note(event.type);
      return events.push(event);
    },
  };
  const lease = {
    execution: EXECUTION,
    lost: new AbortController().signal,
    confirm: async () => note('confirm'),
    call: <T>(work: (job: string, execution: Execution) => Promise<T>) => work('job', EXECUTION),
  };
  const once = { attempts: 2, first_delay_ms: 1, max_delay_ms: 1 };
  const stops = new StopRequests();
  const ctx = {
    deps: { objects, store: jobStore, timing: { storage: once } },
    job: { id: 'job', spec: testSpec({ keep: { last: 2 } }) },
    lease,
    stops,
    log,
  } as unknown as AttemptContext;
  return { checkpoints: new JobCheckpoints(ctx, ERRORS), stops, steps, events, recorded, store };
}
