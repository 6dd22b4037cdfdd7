/** Attempt of a job for tests of its checkpoints, without a queue and without processes. */
import type { Job } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { continueTrace } from '../../platform/tracing.js';
import {
  type AttemptContext,
  type TrainableJob,
  type WorkerStore,
  withSteps,
} from '../agent/attempt/context.js';
import { Resizer } from '../agent/attempt/resizer.js';
import { StopRequests } from '../agent/attempt/stop-requests.js';
import { Lease } from '../agent/lease/lease.js';
import { LinkServer } from '../agent/link/link-server.js';
import { AgentMetrics } from '../agent/metrics/agent-metrics.js';
import { Drain } from '../agent/preemption/drain.js';
import { openGraders } from '../agent/project-graders.js';
import { LogReporter } from '../agent/reporting/log-reporter.js';
import { ProgressReporter } from '../agent/reporting/progress-reporter.js';
import { testProcesses } from './child-processes.js';
import { TEST_TIMING } from './fleet.js';

const log = createLogger({ level: 'silent', name: 'test' });
const LONG_MS = 60_000;
const ONCE = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };

interface TestAttemptOptions {
  store: WorkerStore;
  objects: ObjectStore;
  job_id: string;
  /** Worker that claims it; the same worker may claim again at once. */
  worker?: string;
  /** Duration of the lease. */
  lease_ms?: number;
}

export interface TestAttempt {
  ctx: AttemptContext & { job: TrainableJob };
  job: Job;
  close(): Promise<void>;
}

/** Claims the job's current attempt with a new epoch. @throws Error when the claim is not granted */
export async function claimForTest(options: TestAttemptOptions): Promise<TestAttempt> {
  const { store, objects, job_id, worker = 'worker', lease_ms = LONG_MS } = options;
  const attempt = (await store.getJob(job_id))?.attempt ?? 0;
  const claim = await store.claimAttempt(job_id, attempt, worker, lease_ms);
  if (!claim.granted) throw new Error(claim.code);
  const { execution } = claim;
  const job = withSteps(claim.job);
  const onControl = () => undefined;
  const lease = new Lease({ store, job_id, execution, lease_ms, log, onControl }, performance.now());
  const reporter = new ProgressReporter({
    store,
    lease,
    interval_ms: LONG_MS,
    log,
    evaluations: job.progress.evaluations,
  });
  const logs = new LogReporter({ store, lease, interval_ms: LONG_MS, log });
  const server = await LinkServer.listen('127.0.0.1', log);
  const deps: AttemptContext['deps'] = {
    store,
    objects,
    object_store: { url: objects.url, s3_endpoint: null },
    sessions: null,
    processes: testProcesses(),
    graders: openGraders(
      { webhook_allow: [], grader_python: 'python3', grader_credentials: new Map() },
      store,
    ),
    cache_dir: '',
    cache_bytes: 0,
    slots: 1,
    numerics: null,
    gpus: null,
    answer_gpus: null,
    links: { address: '127.0.0.1', server },
    machine: null,
    topology: [],
    threads_per_rank: 1,
    price_per_rank_hour: 0,
    drain: new Drain(),
    metrics: new AgentMetrics({ pool: 'test', slots: 1 }),
    timing: { ...TEST_TIMING, storage: ONCE },
    log,
  };
  const stops = new StopRequests();
  const resizer = new Resizer({ store, lease, stops });
  return {
    ctx: { deps, job, trace: continueTrace(null), lease, stops, resizer, reporter, logs, log },
    job,
    close: async () => {
      await lease.close();
      await Promise.all([reporter.close(), logs.close()]);
      await server.close();
    },
  };
}
