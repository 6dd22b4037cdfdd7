/** The process that runs the API and nothing else, so that its event loop delay and memory are those of the API. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { ulid } from 'ulid';
import { upload } from '../../api/testing/model-uploads.js';
import { ADMIN_KEY, CHATS, startTestStack, type TestStack } from '../../api/testing/stack.js';
import { claimAndTrain, servedCheckpoint } from '../../api/testing/training.js';
import { type Model, type SampleReply, ZerofleetError } from '../../contracts/index.js';
import { modelFolder, TINY_TOKENIZER, tarOf } from '../../formats/testing/models.js';
import { DatasetSources } from '../../platform/dataset-sources.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { S3StandIn } from '../../platform/testing/s3-stand-in.js';
import { FORM } from '../openai/requests.js';
import type { FromApi, Ids, Order } from './api-process.js';
import { OPEN_BUCKET, OPEN_KEYS } from './values.js';

const MIB = 1024 * 1024;
/** Time after which idle threads have ended and freed their memory. */
const REST_MS = 12_000;
/** Number of garbage collections: one may free what another has found. */
const COLLECTIONS = 5;
const HOUR_MS = 3_600_000;
const REDIS_BYTES = 256 * MIB;
const LEASE_MS = 10_000;

const ANSWER: SampleReply = {
  ok: true,
  sample: {
    prompt: 'p',
    choices: [{ index: 0, text: 'yes', finish_reason: 'stop', logprobs: [] }],
    usage: { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 },
  },
};

const bucket = await openBucket();
const stack = await startTestStack({
  sources: bucket.sources,
  samples: {
    sample: async (_, __, { onStart }) => {
      onStart?.();
      return ANSWER;
    },
  },
  limits: { requests_per_minute: 1_000_000_000, sample_timeout_ms: 50 },
});
const delay = monitorEventLoopDelay({ resolution: 1 });
await limitRedis(stack.redis.url);
const lease = await heldLease(stack);

const orders: Record<Order['kind'], (order: Order) => Promise<unknown>> = {
  // What a full Redis refuses is not there for the next requests.
  fill: ({ ids = {} }) => fill(stack, ids).catch((error) => (isFull(error) ? {} : Promise.reject(error))),
  async rest() {
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
    for (let i = 0; i < COLLECTIONS; i += 1) globalThis.gc?.();
    return process.memoryUsage().rss / MIB;
  },
  async watch() {
    delay.enable();
  },
  async watched() {
    delay.disable();
    const [p99Ms, maxMs] = [delay.percentile(99) / 1e6, delay.max / 1e6];
    return { p99_ms: p99Ms, max_ms: maxMs, lease_error: lease.error };
  },
};

const say = (message: FromApi) => process.send?.(message);
process.on('message', async (order: Order) => {
  try {
    say({ value: await orders[order.kind](order) });
  } catch (error) {
    say({ error: String((error as Error).stack) });
  }
});
process.once('disconnect', async () => {
  lease.end();
  await stack.close();
  await bucket.close();
});
say({ value: await stack.listen() });

const isFull = (error: unknown) => error instanceof ZerofleetError && error.code === 'redis_full';

/** Limits Redis to the memory of a small machine. */
async function limitRedis(url: string): Promise<void> {
  const redis = await connectRedis(url, 'commands');
  await redis.config('SET', 'maxmemory', REDIS_BYTES);
  await disconnectRedis(redis);
}

/** Holds a job as its worker does. `error` is the code with which its lease was lost. */
async function heldLease({ store, createJob }: TestStack): Promise<{ error: string | null; end(): void }> {
  const { id } = await createJob();
  const execution = await claimAndTrain(store, id, { steps: 1 });
  const held = { error: null as string | null, end: () => clearInterval(renewing) };
  const renewing = setInterval(() => {
    store.renewLease(id, execution, LEASE_MS).catch((error: unknown) => {
      held.error ??= error instanceof ZerofleetError ? error.code : String(error);
    });
  }, LEASE_MS / 10);
  return held;
}

/** A bucket with an object of each kind that a document may refer to by URI. */
async function openBucket(): Promise<{ sources: DatasetSources; close(): Promise<void> }> {
  process.env.AWS_ACCESS_KEY_ID ??= 'test';
  process.env.AWS_SECRET_ACCESS_KEY ??= 'test';
  const { text, lines, model, tokenizer } = OPEN_KEYS;
  const content = 'to be or not to be, that is the question. '.repeat(20);
  const standIn = new S3StandIn();
  standIn.objects.set(text, Buffer.from(content));
  standIn.objects.set(lines, Buffer.from(`${JSON.stringify({ text: content })}\n`.repeat(20)));
  standIn.objects.set(tokenizer, Buffer.from(JSON.stringify(TINY_TOKENIZER)));
  for (const [name, bytes] of modelFolder()) standIn.objects.set(`${model}/${name}`, bytes);
  const door = await standIn.open();
  const allowed = [{ bucket: OPEN_BUCKET, prefix: '' }];
  const sources = new DatasetSources({ allowed, s3Endpoint: door.endpoint });
  return {
    sources,
    async close() {
      await sources.close();
      door.close();
    },
  };
}

/** Creates an object of each kind, in states that requests alone do not reach. */
async function fill(stack: TestStack, known: Ids): Promise<Ids> {
  const { store, createJob } = stack;
  const [queued, running, ended] = [await createJob(), await createJob(), await createJob()];
  await claimAndTrain(store, running.id, { steps: 3 });
  await claimAndTrain(store, ended.id, { steps: 2, finish: true });
  const checkpoints = (await store.listCheckpoints(running.id)).data;
  const share = `zf_share_${ulid()}${'s'.repeat(17)}`;
  await store.createShare(share, { job_id: running.id, description: 'for a review', life_ms: HOUR_MS });
  const chats = [await stack.upload(CHATS, 'jsonl'), await stack.upload(CHATS, 'jsonl')];
  const key = await store.putApiKey(`zf_${ulid()}`, { name: 'other', scopes: ['jobs:read'] });
  return {
    job: [queued.id, running.id, ended.id],
    ckpt: checkpoints.map(({ id }) => id),
    ds: [queued.spec.data.dataset ?? ''],
    key: [key.id],
    chat: [(await servedCheckpoint(stack)).checkpoint.id],
    session: [await signIn(stack)],
    share: [share],
    chats: chats.map(({ id }) => id),
    base: [await uploadBase(stack)],
    ...(await fillUpload(stack)),
    ...(await fillWebhook(stack, queued.id, known.wh ?? [])),
  };
}

/** @returns the id of a model with a chat template */
async function uploadBase(stack: TestStack): Promise<string> {
  const template = '{% for m in messages %}{{ m.content }}{% endfor %}';
  const files = modelFolder().set('chat_template.jinja', Buffer.from(template));
  return (await upload(stack, await tarOf(files), 'name=tiny')).json<Model>().id;
}

/** An upload of OpenAI's API with its only part. */
async function fillUpload({ request }: TestStack): Promise<Ids> {
  const post = async (url: string, payload: object | string, type = 'application/json') =>
    (
      await request({
        method: 'POST',
        url: `/openai/v1/uploads${url}`,
        headers: { 'content-type': type },
        payload,
      })
    ).json<{
      id: string;
    }>().id;
  const file = { bytes: CHATS.length, filename: 'a.jsonl', mime_type: 'text/jsonl', purpose: 'fine-tune' };
  const parted = await post('', file);
  return { parted: [parted], part: [await post(`/${parted}/parts`, FORM.of(CHATS), FORM.type)] };
}

/** @returns the cookie of a new browser session */
async function signIn({ request }: TestStack): Promise<string> {
  const reply = await request({ method: 'POST', url: '/v1/sessions', payload: { token: ADMIN_KEY } });
  const [cookie = ''] = String(reply.headers['set-cookie']).split(';', 1);
  return cookie;
}

async function fillWebhook({ store }: TestStack, jobId: string, known: readonly string[]): Promise<Ids> {
  const [webhookId, id, createdAt] = [`wh_${ulid()}`, `dlv_${ulid()}`, new Date().toISOString()];
  const url = 'https://hooks.example.com/';
  const webhook = {
    id: webhookId,
    url,
    description: '',
    events: ['*'],
    disabled_reason: null,
    created_at: createdAt,
  };
  const secret = { secret: 'whsec_AA==', created_at: createdAt, expires_at: null };
  // The log's limit is a hundred: new deliveries replace old ones.
  for (const old of known) await store.deleteWebhook('default', old);
  await store.createWebhook('default', { ...webhook, jobs: 'all', enabled: true }, secret);
  const data = { job_id: jobId, seq: 1, position: '3fa91c0b-1-660da8a518800', details: {} };
  const message = { type: 'job.created', timestamp: createdAt, data };
  await store.addDelivery({ id, webhook_id: webhookId, message_id: 'msg_1', message, created_at: createdAt });
  return { wh: [webhookId], dlv: [id] };
}
