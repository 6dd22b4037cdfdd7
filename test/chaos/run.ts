import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { startRadosgw, whyNoRadosgw } from '../../platform/testing/radosgw.js';
import { sampleText } from '../support/stack.js';
import { Answers } from './answers.js';
import { auditJobs, countSpread, type Findings, orphanedObjects } from './audit.js';
import { FaultInjector } from './fault-injector.js';
import { FaultyS3, NO_FAULTS } from './faulty-s3.js';
import { ChaosFleet } from './fleet.js';
import { Random } from './random.js';
import type { RedisKind } from './redis.js';
import { Sessions } from './sessions.js';
import { Workload } from './workload.js';

interface ChaosOptions {
  /** Duration of fault injection; running jobs are awaited afterwards. */
  seconds: number;
  seed: number;
  redis: RedisKind;
}

interface ChaosReport {
  seed: number;
  redis: RedisKind;
  failovers: number;
  seconds: number;
  store: string;
  /** Acknowledged jobs, without the references. */
  jobs: number;
  /** Started programs, including the first start. */
  starts: number;
  disturbances: FaultInjector['counts'];
  requests: FaultyS3['counts'] | null;
  pauses: number;
  resumes: number;
  resizes: number;
  /** Whole answers, and streams that broke and were asked for again. */
  answers: number;
  broken_streams: number;
  /** Training sessions, and their calls. */
  sessions: number;
  calls: number;
  /** Jobs that trained on several agents at once. */
  spread: number;
  findings: Findings;
}

const AGENTS = 2;
const SLOTS = 3;
const CONCURRENCY = 4;
const BUCKET = 'zerofleet-chaos';
/** An hour of jobs writes some GiB, and radosgw keeps deleted data for hours: a full store refuses everything. */
const STORE_BYTES = 8 * 1024 ** 3;
/** Time from an agent's exit to that of its last child. */
const ORPHAN_MS = 15_000;

/** The object store of the fleet, and fault-free access to it. */
interface Store {
  name: string;
  env: Record<string, string>;
  faulty: FaultyS3 | null;
  objects: ObjectStore;
  close(): Promise<void>;
}

/** Runs jobs on a fleet with random kills, stops and disconnections, then audits the results. */
export async function runChaos({ seconds, seed, redis }: ChaosOptions): Promise<ChaosReport> {
  const random = new Random(seed);
  const dir = await mkdtemp(join(tmpdir(), 'zf-chaos-'));
  const store = (await whyNoRadosgw()) === null ? await s3Store(random) : await directoryStore(dir);
  const mark = randomUUID();
  try {
    const options = { dir, agents: AGENTS, slots: SLOTS, redis, store: store.env };
    const fleet = await ChaosFleet.start(options, mark);
    const faultInjector = new FaultInjector(fleet, AGENTS, store.faulty, random);
    const workload = await Workload.prepare(fleet.client, sampleText(), random);
    const answers = await Answers.prepare(fleet.client, await workload.checkpointOfReference(), random);
    const sessions = await Sessions.prepare(fleet.client, workload, random);
    const end = AbortSignal.timeout(seconds * 1000);
    const calm = faultInjector.run(end).then(() => {
      if (store.faulty) store.faulty.faults = NO_FAULTS;
    });
    await Promise.all([calm, workload.run(CONCURRENCY, end), answers.run(end), sessions.run(end)]);
    const findings = await auditJobs(fleet.client, workload);
    const spread = await countSpread(fleet.client, workload);
    const strayObjects = await orphanedObjects(store.objects, fleet.client, workload);
    await fleet.stop();
    return {
      seed,
      redis,
      failovers: fleet.redis.failovers,
      seconds,
      store: store.name,
      jobs: workload.submitted.length - workload.references,
      starts: fleet.starts,
      disturbances: faultInjector.counts,
      requests: store.faulty?.counts ?? null,
      ...workload.counts,
      ...answers.counts,
      ...sessions.counts,
      spread,
      findings: {
        ...findings,
        wrong_answers: answers.wrong,
        wrong_results: sessions.wrong,
        stray_objects: strayObjects,
        orphan_processes: await orphans(fleet),
      },
    };
  } finally {
    await store.close();
    await rm(dir, { recursive: true, force: true });
  }
}

export function isClean({ findings }: ChaosReport): boolean {
  return Object.values(findings).every((found) => found.length === 0);
}

async function orphans(fleet: ChaosFleet): Promise<string[]> {
  for (const deadline = Date.now() + ORPHAN_MS; ; await sleep(200)) {
    const left = fleet.marked();
    if (left.length === 0) return [];
    if (Date.now() < deadline) continue;
    for (const { pid } of left) process.kill(pid, 'SIGKILL');
    return left.map(({ pid, command }) => `${pid} ${command}`);
  }
}

async function s3Store(random: Random): Promise<Store> {
  const s3 = await startRadosgw(STORE_BYTES);
  await s3.createBucket(BUCKET);
  const faulty = new FaultyS3(s3, random);
  const endpoint = await faulty.start();
  const credentials = {
    AWS_REGION: s3.region,
    AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
  };
  const url = `s3://${BUCKET}/fleet`;
  Object.assign(process.env, credentials);
  const objects = await openObjectStore(url, { s3Endpoint: s3.endpoint });
  return {
    name: 's3',
    env: { ...credentials, ZEROFLEET_OBJECT_STORE: url, ZEROFLEET_S3_ENDPOINT: endpoint },
    faulty,
    objects,
    close: async () => {
      await objects.close();
      await faulty.close();
      await s3.stop();
    },
  };
}

async function directoryStore(dir: string): Promise<Store> {
  const path = join(dir, 'objects');
  await mkdir(path);
  const url = pathToFileURL(path).href;
  const objects = await openObjectStore(url, {});
  return {
    name: 'directory without faults: there is no S3 server',
    env: { ZEROFLEET_OBJECT_STORE: url },
    faulty: null,
    objects,
    close: () => objects.close(),
  };
}
