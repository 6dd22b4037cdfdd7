import { type ChildProcess, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { ulid } from 'ulid';
import { type Dataset, isFinal, type Job, type TraceHeaders } from '../../contracts/index.js';
import { datasetKey } from '../../contracts/object-keys.js';
import { startScheduler } from '../../control/scheduling/start.js';
import { loadConfig } from '../../platform/config/config.js';
import { createLogger } from '../../platform/logging/logging.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { programPath } from '../../platform/process/programs.js';
import { startTestRedis, type TestRedis } from '../../platform/testing/redis.js';
import { testProgram } from '../../platform/testing/test-program.js';
import { type JobStore, openJobStore, putAccepted, putDatasetDocument, putSpec } from '../../state/index.js';
import { noteExecutions } from '../../state/testing/executions.js';
import { type RunningWorker, type StartWorkerOptions, startWorker } from '../agent/start.js';
import type { Timing } from '../shared/timing.js';
import type { RankFaults } from './fake-rank-main.js';
import { submittedSpec, type TestSpec } from './start-message.js';

/** Long, for busy machines. */
const WAIT_MS = 240_000;

const quick = { attempts: 3, first_delay_ms: 20, max_delay_ms: 100 };

/** Short timeouts for tests that wait for them. On a busy machine a live rank or agent may exceed them. */
export const SHORT_SILENCES = { lease_ms: 3_000, silence_ms: 4_000, join_ms: 3_000 };

/** Short intervals, except for timeouts of other processes. */
export const TEST_TIMING: Timing = {
  lease_ms: 10_000,
  stalled_interval_ms: 500,
  heartbeat_ms: 200,
  silence_ms: 20_000,
  comm_timeout_ms: 20_000,
  join_ms: 15_000,
  cancel_grace_ms: 3_000,
  kill_ms: 60_000,
  drain_ms: 20_000,
  report_interval_ms: 50,
  model_idle_ms: 60_000,
  hand_back_ms: 200,
  restart: { ...quick, attempts: Number.MAX_SAFE_INTEGER },
  restart_in_place_ms: 1_000,
  storage: quick,
  save: { periodic: quick, final: quick },
};

const SCHEDULER_TEST_TIMING = { tick_ms: 200, grow_interval_ms: 200 };

export const PROGRAMS = {
  fake: {
    rank: testProgram('worker/testing/fake-rank-main'),
    task: testProgram('worker/testing/fake-task-main'),
  },
  native: { rank: programPath('worker/rank/main'), task: programPath('worker/tasks/main') },
};

export interface FleetOptions {
  /** Faults and delays of the ranks. */
  ranks?: RankFaults;
  /** Core of the child processes. */
  core?: 'fake' | 'native';
  /** Main modules of the child processes. */
  programs?: { rank: string; task: string };
  text?: string;
  /** Bucket and S3 endpoint in place of a directory. */
  bucket?: { url: string; endpoint: string };
}

/** Private Redis, directory object store, job store and queue for agents. */
export class Fleet {
  readonly objectsDir: string;
  /** Default dataset of jobs. */
  datasetId = '';
  /** Receives log lines of agents in this process. */
  onLog: ((line: string) => void) | null = null;
  private readonly closers: (() => Promise<unknown>)[] = [];

  private constructor(
    readonly dir: string,
    readonly redis: TestRedis,
    readonly store: JobStore,
    readonly objects: ObjectStore,
    private readonly programs: { rank: string; task: string },
  ) {
    this.objectsDir = join(dir, 'objects');
  }

  static async start({
    ranks = {},
    core = 'fake',
    programs,
    text = 'some text '.repeat(500),
    bucket,
  }: FleetOptions = {}) {
    const dir = await mkdtemp(join(tmpdir(), 'zf-fleet-'));
    process.env.ZF_TEST_FAULTS = join(dir, 'faults.json');
    await writeFile(process.env.ZF_TEST_FAULTS, JSON.stringify(ranks));
    const redis = await startTestRedis();
    const store = noteExecutions(await openJobStore({ url: redis.url }));
    const objects = bucket
      ? await openObjectStore(bucket.url, { s3Endpoint: bucket.endpoint })
      : await openObjectStore(pathToFileURL(join(dir, 'objects')).href, { create: true });
    const own = programs ?? PROGRAMS[core];
    const fleet = new Fleet(dir, redis, store, objects, own);
    fleet.startScheduler();
    fleet.datasetId = await fleet.addDataset(Buffer.from(text));
    return fleet;
  }

  /** Starts an agent in this process. */
  async agent(
    slots = 4,
    timing: Partial<Timing> = {},
    env: Record<string, string> = {},
    parts: Pick<StartWorkerOptions, 'preemption' | 'fork'> = {},
  ): Promise<RunningWorker> {
    const worker = await startWorker({
      config: loadConfig({
        ZEROFLEET_DATA_DIR: join(this.dir, 'data'),
        ZEROFLEET_SLOTS: String(slots),
        ...env,
      }),
      redisUrl: this.redis.url,
      objectStoreUrl: this.objects.url,
      log: this.agentLog(),
      timing: { ...TEST_TIMING, ...timing },
      programs: this.programs,
      ...parts,
    });
    this.closers.unshift(() => worker.close());
    return worker;
  }

  private agentLog() {
    const { onLog } = this;
    if (onLog) return createLogger({ level: 'info', name: 'agent', destination: { write: onLog } });
    return createLogger({ level: process.env.ZF_TEST_LOG ? 'info' : 'silent', name: 'agent' });
  }

  /** Starts an agent in a process of its own, which can be killed. */
  async agentProcess(slots = 4, timing: Partial<Timing> = {}): Promise<ChildProcess> {
    const argv = [this.dir, this.redis.url, this.objects.url, String(slots), JSON.stringify(timing)];
    const child = fork(testProgram('worker/testing/agent-main'), argv, { execArgv: [] });
    this.closers.unshift(async () => child.kill('SIGKILL'));
    await new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve());
      child.once('exit', () => reject(new Error('the agent ended while starting')));
    });
    return child;
  }

  /** Stores a dataset, a text by default. Returns its id. */
  async addDataset(bytes: Buffer, fields: Partial<Dataset> = {}): Promise<string> {
    const id = `ds_${ulid()}`;
    await this.objects.put(datasetKey(id), bytes);
    const dataset: Dataset = {
      id,
      name: 'test',
      description: '',
      format: 'text',
      bytes: bytes.length,
      digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
      num_documents: 1,
      source: null,
      num_chats: 0,
      num_preferences: 0,
      num_labelled: 0,
      num_prompts: 0,
      num_tokens: bytes.length,
      max_token: null,
      project: 'default',
      created_at: new Date().toISOString(),
      ...fields,
    };
    await putDatasetDocument(this.objects, dataset);
    await this.store.putDataset(dataset);
    return id;
  }

  /** Creates a job; it is queued when this resolves. */
  async submit(spec: TestSpec = {}, trace?: TraceHeaders): Promise<string> {
    const id = `job_${ulid()}`;
    const resolved = submittedSpec({ dataset: this.datasetId, ...spec });
    await putSpec(this.objects, { job_id: id, spec: resolved, idempotency: null });
    const { job } = await this.store.createJob({ id, spec: resolved, ...(trace && { trace }) });
    await putAccepted(this.objects, job);
    return id;
  }

  /** Waits until the job passes the test. Throws with the job when it ended otherwise or after a timeout. */
  async until(id: string, test: (job: Job) => boolean): Promise<Job> {
    for (const deadline = Date.now() + WAIT_MS; ; await delay(20)) {
      const job = await this.store.getJob(id).catch(() => null);
      if (job && test(job)) return job;
      const hasEnded = job !== null && isFinal(job.state);
      if (!hasEnded && Date.now() < deadline) continue;
      const events = (await this.events(id)).slice(-10);
      throw new Error(`timeout; the job is ${JSON.stringify({ job, events }, null, 1)}`);
    }
  }

  untilState(id: string, state: Job['state']): Promise<Job> {
    return this.until(id, (job) => job.state === state);
  }

  async events(id: string) {
    const entries = await this.store.readStream(id, null, 10_000, ['event']);
    return entries.flatMap((entry) => (entry.kind === 'event' ? [entry] : []));
  }

  /** Returns the job's metrics, in order of time. */
  async metrics(id: string) {
    const entries = await this.store.readStream(id, null, 100_000, ['metric']);
    return entries.flatMap((entry) => (entry.kind === 'metric' ? [entry] : []));
  }

  /** Returns the steps of the job's metrics. */
  async steps(id: string): Promise<number[]> {
    return (await this.metrics(id)).map(({ step }) => step);
  }

  /** Makes steps before this one as fast as possible; see `RankFaults.slow`. */
  async speedUp(step = Number.MAX_SAFE_INTEGER): Promise<void> {
    const file = `${process.env.ZF_TEST_FAULTS}.speedUp`;
    await writeFile(`${file}.new`, String(step));
    await rename(`${file}.new`, file);
  }

  /** Simulates a full disk for the shards. Returns the function that ends it. */
  async fillDisk(): Promise<() => Promise<void>> {
    const file = `${process.env.ZF_TEST_FAULTS}.disk-full`;
    await writeFile(file, '');
    return () => rm(file);
  }

  /** Returns the ids of this fleet's live rank processes, whatever their parent. */
  async rankProcesses(): Promise<number[]> {
    const faults = join(this.dir, 'faults.json');
    const found: number[] = [];
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const [command = '', env = ''] = await Promise.all(
        ['cmdline', 'environ'].map((file) => readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '')),
      );
      // The faults file is unique to this fleet. The command of a zombie is empty.
      if (command.includes(this.programs.rank) && env.includes(faults)) found.push(Number(pid));
    }
    return found;
  }

  /** Waits until no rank is left. */
  async untilNoRanks(): Promise<void> {
    for (const deadline = Date.now() + WAIT_MS; ; await delay(50)) {
      const ranks = await this.rankProcesses();
      if (ranks.length === 0) return;
      if (Date.now() > deadline) throw new Error(`ranks are left: ${ranks.join(', ')}`);
    }
  }

  async keys(prefix: string): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key } of this.objects.list(prefix)) keys.push(key);
    return keys;
  }

  async close(): Promise<void> {
    for (const close of this.closers) await close();
    await this.objects.close();
    await this.store.close();
    await this.redis.stop();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** Starts the scheduler, which the API runs in production. */
  private startScheduler(): void {
    const { store, objects } = this;
    const log = createLogger({ level: process.env.ZF_TEST_LOG ? 'info' : 'silent', name: 'scheduler' });
    const scheduler = startScheduler({
      redisUrl: this.redis.url,
      store,
      objects,
      log,
      timing: SCHEDULER_TEST_TIMING,
    });
    this.closers.push(() => scheduler.close());
  }
}
