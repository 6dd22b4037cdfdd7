/**
 * Variant of save-crash.test.ts in which a save to S3 dies at each of its requests: begin, parts and end of an upload,
 * every document, listing and deletion. The same is tested with a single failed request after which the process
 * continues.
 */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { S3Store } from '../../../platform/object-store/s3/store.js';
import { startTestRedis } from '../../../platform/testing/redis.js';
import { S3StandIn } from '../../../platform/testing/s3-stand-in.js';
import { openJobStore } from '../../../state/index.js';
import { testDataset } from '../../../state/testing/jobs.js';
import { checkRecovery, spec, trainAndSave } from '../../testing/saving-process.js';

/** Small enough that a shard has several parts. */
const LIMITS = { partBytes: 1024, parallelParts: 2 };
const BUCKET = 'tests';

const redis = await startTestRedis();
const store = await openJobStore({ url: redis.url });
t.teardown(async () => {
  await store.close();
  await redis.stop();
});

await store.putDataset({ ...testDataset(), id: spec.data.dataset ?? '' });

/** Request that fails: its connection is reset before it takes effect, or after it and before the reply. */
interface Fault {
  at: number;
  moment: 'before' | 'after';
  /** True if later requests succeed; false if the process is dead. */
  lives: boolean;
}

/** Results collected over all faults. */
interface Seen {
  /** Names of the failed requests, without keys. */
  requests: Set<string>;
  /** Steps of the newest checkpoints afterwards. */
  steps: Set<number>;
}

const OF_A_SAVE = [
  'CompleteMultipartUpload',
  'CreateMultipartUpload',
  'DeleteObject',
  'GetObject',
  'ListMultipartUploads',
  'ListObjectsV2',
  'PutObject',
  'UploadPart',
];

function storeAt(endpoint: string): S3Store {
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  return new S3Store({
    bucket: BUCKET,
    prefix: 'store',
    endpoint,
    region: 'us-east-1',
    credentials,
    limits: LIMITS,
    // Retries are disabled, because those of the SDK would hide the fault.
    maxAttempts: 1,
  });
}

for (const lives of [false, true]) {
  for (const moment of ['before', 'after'] as const) {
    const cause = lives ? 'a single failed request' : 'death';
    t.test(`${cause}, ${moment} every request to S3: a save is done or not done`, async (t) => {
      const seen: Seen = { requests: new Set(), steps: new Set() };
      let at = 1;
      for (; await survives(t, { at, moment, lives }, seen); at++);
      t.strictSame([...seen.requests].filter((name) => name !== 'AbortMultipartUpload').sort(), OF_A_SAVE);
      t.strictSame(seen.steps, new Set([3, 6]), 'both outcomes occurred');
    });
  }
}

/** Runs one fault. Returns false when the save finished before the request that fails. */
async function survives(t: Test, { at, moment, lives }: Fault, seen: Seen): Promise<boolean> {
  const server = new S3StandIn();
  const [healthyServer, dyingServer] = [await server.open(), await server.open(fate)];
  const healthy = { store, objects: storeAt(healthyServer.endpoint) };
  const dying = { store, objects: storeAt(dyingServer.endpoint) };
  const requests: string[] = [];
  function fate(name: string) {
    requests.push(name);
    if (requests.length < at || (lives && requests.length > at)) return 'served';
    return requests.length === at && moment === 'after' ? 'mute' : 'cut';
  }
  try {
    const jobId = `job_${ulid()}`;
    await store.createJob({ id: jobId, spec });
    await trainAndSave(healthy, jobId, 2);
    // No process receives the reports of the dying one.
    await trainAndSave(dying, jobId, 2).catch(() => undefined);
    const request = requests[at - 1];
    if (request === undefined) return false;
    seen.requests.add(request.split(' ')[0] ?? '');
    const step = await checkRecovery(t, healthy, {
      job_id: jobId,
      call: `${moment} request ${at}, ${request}`,
    });
    if (step !== null) seen.steps.add(step);
    t.equal(server.uploads.size, 0, 'no parts were left');
    return true;
  } finally {
    await Promise.all([healthy.objects.close(), dying.objects.close()]);
    healthyServer.close();
    dyingServer.close();
  }
}
