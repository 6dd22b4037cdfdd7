import type { Test } from 'tap';
import type { Integration, JobEvent, JobSpec, StreamEntry } from '../../../contracts/index.js';
import type { TrackerServer } from '../../../platform/config/tracker-servers.js';
import { createLogger } from '../../../platform/logging/logging.js';
import { AddressPolicy } from '../../../platform/outgoing/addresses.js';
import type { JobStore } from '../../../state/index.js';
import { NO_WORKERS, startTestStack } from '../../testing/stack.js';
import { metricOf } from '../../testing/training.js';
import { Forwarder, type ForwarderOptions } from '../forwarder.js';
import { Trackers } from '../trackers.js';
import { type Kind, TOKEN } from './kinds.js';
import { startTestTracker, type TrackerStore } from './server.js';

const LOOPBACK = ['127.0.0.0/8'];

/** Intervals for tests; nothing is given up, and no request times out. */
const TIMING = {
  poll_ms: 10,
  lease_ms: 60_000,
  idle_ms: 10,
  timeout_ms: 600_000,
  first_retry_ms: 10,
  max_retry_ms: 50,
};

/** Names of the servers that jobs may name. */
const NAMES = ['main', 'other', 'named', 'gone'];

/** An API for `setUp`. */
export async function startApi(t: Test) {
  const servers = new Map(NAMES.map((name) => [name, { url: 'https://tracker.example.com' }]));
  const trackers = { mlflow: servers, wandb: servers };
  const stack = await startTestStack({ webhookAllow: LOOPBACK, trackers });
  t.teardown(() => stack.close());
  return stack;
}

/**
 * An API and two trackers on loopback: `main`, which has credentials, and `other`. `named` has a name for an address,
 * and the forwarder does not know `gone`.
 */
export async function setUp<S extends TrackerStore>(
  t: Test,
  { integration, open }: Kind<S>,
  given?: Awaited<ReturnType<typeof startApi>>,
) {
  const stack = given ?? (await startApi(t));
  const tracker = await startTestTracker(open());
  const other = await startTestTracker(open());
  t.teardown(async () => {
    await tracker.close();
    await other.close();
  });
  const servers: Record<string, TrackerServer> = {
    main: { url: tracker.url, token: TOKEN },
    other: { url: other.url },
    named: { url: 'https://tracker.example.com' },
  };
  const { store } = stack;

  /** Starts forwarding like an API process. */
  const startForwarding = (changes: Partial<ForwarderOptions> = {}) => {
    const none = { mlflow: new Map(), wandb: new Map() };
    const known = { ...none, [integration.type]: new Map(Object.entries(servers)) };
    const log = createLogger({ level: 'silent', name: 'test' });
    const forwarder = new Forwarder({
      store,
      trackers: new Trackers(known, new AddressPolicy(LOOPBACK)),
      samples: NO_WORKERS,
      log,
      ...changes,
      timing: { ...TIMING, ...changes.timing },
    });
    t.teardown(() => forwarder.close());
    return forwarder;
  };
  const createJob = (changed: Partial<Integration> = {}, changes: Partial<JobSpec> = {}) => {
    const target = changed.url === undefined ? { server: 'main' } : {};
    const integrations: Integration[] = [{ ...integration, ...target, ...changed }];
    return stack.createJob({ train: { steps: 1_000_000, sequence_length: 16 }, ...changes, integrations });
  };
  return { ...stack, tracker, other, startForwarding, createJob };
}

/** A worker that claims a job, for one attempt. */
export async function claimed(store: JobStore, jobId: string, attempt = 1) {
  const claim = await store.claimAttempt(jobId, attempt, `worker-${attempt}`, 600_000);
  if (!claim.granted) throw new Error(claim.code);
  const { execution } = claim;
  await store.transition(jobId, execution, 'starting');
  await store.transition(jobId, execution, 'running', { patch: { world_size: 1 } });
  return {
    execution,
    /** Reports steps. */
    async train(from: number, to: number) {
      const steps = Array.from({ length: to - from + 1 }, (_, i) => metricOf(from + i));
      await store.report(jobId, execution, steps, { ...claim.job.progress, step: to });
    },
  };
}

/** Waits for an event of a job. */
export async function eventOf(store: JobStore, jobId: string, type: string): Promise<JobEvent> {
  for (let after: string | null = null; ; ) {
    const entries: StreamEntry[] = await store.readStream(jobId, after, 1000);
    for (const entry of entries) if (entry.kind === 'event' && entry.type === type) return entry;
    after = entries.at(-1)?.position ?? after;
    await store.waitStream(jobId, after, { timeoutMs: 60_000 });
  }
}

export const stepsTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);
