/**
 * Idempotency of every mutating request: sent three times concurrently with one idempotency key, it has one effect. A
 * new operation does not compile until one of the tables lists it.
 */
import type { LightMyRequestResponse } from 'fastify';
import t from 'tap';
import { ulid } from 'ulid';
import type { OperationId, Problem } from '../../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../../platform/redis/connect.js';
import type { ExportPort } from '../../services.js';
import { JOB_MUTATIONS } from '../../testing/mutations/jobs.js';
import type { Mutation } from '../../testing/mutations/mutation.js';
import { RECORD_MUTATIONS } from '../../testing/mutations/records.js';
import { SWEEP_MUTATIONS } from '../../testing/mutations/sweeps.js';
import { startTestStack } from '../../testing/stack.js';

const reads: 'changes nothing' = 'changes nothing';
/**
 * Sending a part of an upload or the values of a tensor again changes nothing more, so its key need not be stored for
 * seven days. A lost answer of a sign-in is replaced by another code or session, and a session that has ended stays so.
 */
const unkeyed: 'takes no key' = 'takes no key';

const ROWS: { readonly [Id in OperationId]: Mutation | typeof reads | typeof unkeyed } = {
  getHealth: reads,
  getReadiness: reads,
  getOpenapi: reads,
  getSignInMethods: reads,
  listJobs: reads,
  getJob: reads,
  getJobDocument: reads,
  listJobAttempts: reads,
  listJobEvents: reads,
  listJobLogs: reads,
  listJobMetrics: reads,
  listJobCheckpoints: reads,
  streamJob: reads,
  listCalls: reads,
  getCall: reads,
  getCallResult: reads,
  getRollout: reads,
  putCall: unkeyed,
  getCheckpoint: reads,
  getCheckpointArchive: reads,
  getCheckpointFile: reads,
  createDownloadUrls: reads,
  createUploadUrls: reads,
  listCheckpointExports: reads,
  listCheckpointTensors: reads,
  getCheckpointTensor: reads,
  putCheckpointTensor: unkeyed,
  getTensorEdit: reads,
  verifyCheckpoint: reads,
  sampleCheckpoint: reads,
  sampleModel: reads,
  estimateMemory: reads,
  previewData: reads,
  runGrader: reads,
  validateGrader: reads,
  listDatasets: reads,
  getDataset: reads,
  getDatasetContent: reads,
  listModels: reads,
  getModel: reads,
  listApiKeys: reads,
  listShares: reads,
  getApiKey: reads,
  listUsers: reads,
  listAuditLog: reads,
  listProjects: reads,
  getProject: reads,
  getHubToken: reads,
  getUsage: reads,
  getMe: reads,
  listCheckpoints: reads,
  getMetrics: reads,
  listPools: reads,
  listWorkers: reads,
  listSweeps: reads,
  getSweep: reads,
  listWebhooks: reads,
  getWebhook: reads,
  listWebhookDeliveries: reads,

  getUpload: reads,
  putUploadPart: unkeyed,
  createSignInCode: unkeyed,
  createSession: unkeyed,
  endSession: unkeyed,
  endSessions: unkeyed,

  ...JOB_MUTATIONS,
  ...RECORD_MUTATIONS,
  ...SWEEP_MUTATIONS,
};

const asked = new Set<string>();
/** Workers that never start an export. */
const exports: ExportPort = {
  request: async (_pool, payload) => {
    asked.add(JSON.stringify(payload));
    return { state: 'queued' };
  },
  progress: async (_pool, payload) => (asked.has(JSON.stringify(payload)) ? { state: 'queued' } : null),
};

const stack = await startTestStack({ exports });
t.teardown(() => stack.close());

const codeOf = (reply: LightMyRequestResponse) => reply.json<Partial<Problem>>().code;

function repeats({ isAtomic, showsSecret }: Mutation): string[] {
  if (isAtomic) return [];
  return ['idempotency_key_in_use', ...(showsSecret ? ['response_not_repeatable'] : [])];
}

t.test('the tables list every mutating operation', async (t) => {
  const { operations } = stack.app.services.contract;
  for (const { operationId, isAudited, isKeyed } of operations.values()) {
    const row = ROWS[operationId];
    t.equal(row !== reads && row !== unkeyed, isKeyed, `${operationId} takes a key if it is mutating`);
    if (row === unkeyed) continue;
    // Creating URLs that need no key is worth an entry in the audit log.
    const changes = isAudited && !/^create(Download|Upload)Urls$/.test(operationId);
    t.equal(isKeyed, changes, `${operationId} is in the audit log if it is mutating`);
  }
});

for (const [id, row] of Object.entries(ROWS)) {
  if (row === reads || row === unkeyed) continue;
  t.test(id, async (t) => {
    const { request, effects } = await row.prepare(stack);
    const keyed = { ...request, headers: { ...request.headers, 'idempotency-key': ulid() } };
    const before = await effects([]);
    const replies = await Promise.all([1, 2, 3].map(() => stack.request(keyed)));
    const done = replies.filter(({ statusCode }) => statusCode < 300);
    const first = done.find(({ headers }) => headers['idempotent-replayed'] === undefined);
    t.equal(first?.statusCode, row.status, replies.map(({ body }) => body).join());
    for (const reply of done) t.equal(reply.body, first?.body, 'the same answer');
    for (const reply of replies.filter(({ statusCode }) => statusCode >= 300)) {
      t.ok(repeats(row).includes(codeOf(reply) ?? ''), reply.body);
      if (codeOf(reply) === 'idempotency_key_in_use') t.ok(reply.headers['retry-after']);
    }
    t.equal(Math.abs((await effects(replies)) - before), 1, 'one effect');

    const again = await stack.request(keyed);
    if (row.showsSecret) t.equal(codeOf(again), 'response_not_repeatable');
    else {
      t.match(again.headers, { 'idempotent-replayed': 'true' });
      t.equal(again.statusCode, row.status);
      t.equal(again.body, first?.body);
      for (const name of ['content-type', 'location', 'etag'])
        t.equal(again.headers[name], first?.headers[name], name);
    }
    t.equal(Math.abs((await effects([...replies, again])) - before), 1, 'still one');
  });
}

t.test('a refused or failed request frees its key; another request with a used key is refused', async (t) => {
  const { id } = await stack.createJob();
  const headers = { 'idempotency-key': ulid() };
  const resize = (ranks: number, job = id) =>
    stack.request({ method: 'POST', url: `/v1/jobs/${job}/resize`, headers, payload: { ranks } });
  t.equal((await resize(100)).statusCode, 422);
  t.equal((await resize(3)).statusCode, 202);
  t.equal(codeOf(await resize(4)), 'idempotency_key_reused');
  t.equal(codeOf(await resize(3, (await stack.createJob()).id)), 'idempotency_key_reused', 'of another job');
  // The same text on another route is another key.
  t.equal((await stack.request({ method: 'POST', url: `/v1/jobs/${id}/pause`, headers })).statusCode, 202);
  const mine = await stack.headersIn('team-b');
  const url = `/v1/jobs/${id}/resize`;
  const theirs = await stack.request({
    method: 'POST',
    url,
    headers: { ...headers, ...mine },
    payload: { ranks: 3 },
  });
  t.equal(codeOf(theirs), 'job_not_found', 'of another project, too');
});

t.test('uploads are distinguished by their parameters', async (t) => {
  const headers = { 'idempotency-key': ulid(), 'content-type': 'text/plain' };
  const send = (payload: string, name = 'one') =>
    stack.request({ method: 'POST', url: `/v1/datasets?name=${name}`, headers, payload });
  t.equal((await send('to be or not to be '.repeat(50))).statusCode, 201);
  t.equal(codeOf(await send('to be or not to be '.repeat(51))), 'idempotency_key_reused');
  t.equal(codeOf(await send('to be or not to be '.repeat(50), 'two')), 'idempotency_key_reused');
});

t.test('no secret is stored with an answer', async (t) => {
  const { redis, store } = stack;
  const headers = { 'idempotency-key': ulid() };
  const payload = { name: 'secretive', scopes: ['jobs:read'] };
  const made = await stack.request({ method: 'POST', url: '/v1/api-keys', headers, payload });
  const { secret } = made.json<{ secret: string }>();
  t.ok(await store.findApiKey(secret));
  const client = await connectRedis(redis.url, 'commands');
  t.teardown(() => disconnectRedis(client));
  const keys = await client.keys('*:request:*');
  t.ok(keys.length > 0);
  for (const key of keys) t.notMatch(JSON.stringify(await client.hgetall(key)), secret);
});
