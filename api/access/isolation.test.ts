/**
 * Access matrix: calls every operation of the contract without a key, with unacceptable keys, with a key that lacks the scope,
 * and with an admin key of another project. A new operation does not compile until it has a row here.
 */
import type { InjectOptions } from 'fastify';
import t from 'tap';
import { ulid } from 'ulid';
import { type OperationId, type Problem, SCOPES, type Scope, type Upload } from '../../contracts/index.js';
import { putTestCheckpoint } from '../../platform/testing/checkpoints.js';
import { testModel } from '../../platform/testing/models.js';
import { ContractChecker } from '../testing/contract-checker.js';
import { ADMIN_KEY, smallSpec, startTestStack, type TestStack } from '../testing/stack.js';
import { checkpointOf, claimAndTrain } from '../testing/training.js';

/** Ids of the records of project `default`, by path parameter name. */
interface Ids {
  job_id: string;
  ended_job_id: string;
  checkpoint_id: string;
  dataset_id: string;
  upload_id: string;
  part_number: string;
  model_id: string;
  key_id: string;
  share_id: string;
  webhook_id: string;
  delivery_id: string;
  project: string;
}

/**
 * One operation.
 * - `own`: the status for a key of the project with exactly the scope that the contract requires. It shows that the request is
 *   valid, so the other refusals are caused by the key.
 * - `foreign`: the status for an admin key of another project. Without it, the operation must take an id from the path and answer
 *   exactly as for an unknown id. In both cases the answer contains nothing of the project.
 */
interface Row {
  own: number;
  foreign?: number;
  body?: (ids: Ids) => unknown;
  query?: string;
  headers?: Record<string, string>;
  /** The id for the path, if it differs from the parameter's name. */
  path?: keyof Ids;
  /** The operation needs no key. */
  isOpen?: true;
}

const SHARE = `zf_share_${'s'.repeat(43)}`;

const text = { 'content-type': 'text/plain' };
const TEXT = 'to be or not to be, that is the question. '.repeat(20);

/** Ordered: operations that end or delete a record come last. */
const ROWS: { readonly [Id in OperationId]: Row } = {
  getHealth: { own: 200, isOpen: true },
  getReadiness: { own: 200, isOpen: true },
  getOpenapi: { own: 200, isOpen: true },
  getSignInMethods: { own: 200, isOpen: true },
  createSession: { own: 201, isOpen: true, body: () => ({ token: 'zf_of_default' }) },

  listJobs: { own: 200, foreign: 200 },
  listDatasets: { own: 200, foreign: 200 },
  listModels: { own: 200, foreign: 200 },
  listApiKeys: { own: 200, foreign: 200 },
  listAuditLog: { own: 200, foreign: 200 },
  listWebhooks: { own: 200, foreign: 200 },
  getUsage: { own: 200, foreign: 200 },
  getMe: { own: 200, foreign: 200 },
  createSignInCode: { own: 201, foreign: 201 },
  // Sessions belong to the calling key.
  endSession: { own: 204, foreign: 204 },
  endSessions: { own: 204, foreign: 204 },
  listCheckpoints: { own: 200, foreign: 200 },
  // Operators of the installation may use these with a key of any project.
  listProjects: { own: 200, foreign: 403 },
  getProject: { own: 200, foreign: 403 },
  putProject: { own: 200, foreign: 403, body: () => ({ quota: {} }) },
  getMetrics: { own: 200, foreign: 403 },
  // Pools and workers are shared by all projects.
  listPools: { own: 200, foreign: 200 },
  listWorkers: { own: 200, foreign: 200 },
  estimateMemory: {
    own: 200,
    foreign: 200,
    body: ({ dataset_id }) => ({ spec: smallSpec(dataset_id), world_sizes: [1] }),
  },
  previewData: { own: 200, foreign: 422, body: ({ dataset_id }) => ({ spec: smallSpec(dataset_id) }) },

  getJob: { own: 200 },
  listShares: { own: 200 },
  listJobEvents: { own: 200 },
  listJobMetrics: { own: 200 },
  listJobLogs: { own: 200, query: 'rank=0' },
  listJobCheckpoints: { own: 200 },
  listJobAttempts: { own: 200 },
  getJobDocument: { own: 200 },
  streamJob: { own: 200, path: 'ended_job_id' },
  getCheckpoint: { own: 200 },
  listCheckpointExports: { own: 200 },
  createDownloadUrls: { own: 200, body: () => ({}) },
  getCheckpointFile: { own: 200, query: 'name=MANIFEST.json' },
  verifyCheckpoint: { own: 200 },
  getDataset: { own: 200 },
  getDatasetContent: { own: 200 },
  getUpload: { own: 200 },
  getModel: { own: 200 },
  getApiKey: { own: 200 },
  getWebhook: { own: 200 },
  listWebhookDeliveries: { own: 200 },

  updateDataset: { own: 200, body: () => ({ name: 'other' }) },
  updateModel: { own: 200, body: () => ({ name: 'other' }) },
  updateApiKey: { own: 200, body: () => ({ name: 'other' }) },
  pingWebhook: { own: 202 },
  updateWebhook: { own: 200, body: () => ({ description: 'other' }) },

  createDataset: { own: 201, foreign: 201, query: 'name=isolation', headers: text, body: () => TEXT },
  createUpload: { own: 201, foreign: 201, body: () => ({ name: 'isolation', bytes: 5 }) },
  createUploadUrls: { own: 200, body: () => ({}) },
  putUploadPart: { own: 204, headers: { 'content-type': 'application/octet-stream' }, body: () => 'hello' },
  createModel: {
    own: 422,
    foreign: 422,
    query: 'name=isolation',
    headers: { 'content-type': 'application/x-tar' },
    body: () => '',
  },
  createApiKey: { own: 201, foreign: 201, body: () => ({ name: 'isolation', scopes: ['jobs:read'] }) },
  createWebhook: { own: 201, foreign: 201, body: () => ({ url: 'https://hooks.example.com/' }) },
  // A dataset of another project is treated as unknown.
  createJob: { own: 201, foreign: 422, body: ({ dataset_id }) => smallSpec(dataset_id) },
  forkJob: { own: 201, body: () => ({}) },

  // No worker takes samples or exports here: the request reached the timeout.
  sampleCheckpoint: { own: 504, body: () => ({ prompt: 'a' }) },
  sampleModel: { own: 504, body: () => ({ prompt: 'a' }) },
  exportCheckpoint: { own: 503, body: () => ({}) },
  updateCheckpoint: { own: 200, body: () => ({ pinned: true }) },
  createShare: { own: 201, body: () => ({}) },
  revokeShare: { own: 204 },
  updateJob: { own: 200, body: () => ({ labels: { team: 'a' } }) },
  // The job is running.
  retryJob: { own: 409 },
  deleteJob: { own: 409 },
  resizeJob: { own: 202, body: () => ({ ranks: 3 }) },
  checkpointJob: { own: 202 },
  pauseJob: { own: 202 },
  // The job is still pausing.
  resumeJob: { own: 409, body: () => ({}) },
  cancelJob: { own: 202 },
  deleteCheckpoint: { own: 409 },
  completeUpload: { own: 201 },
  deleteUpload: { own: 204 },
  deleteDataset: { own: 409 },
  deleteModel: { own: 204 },
  rotateApiKey: { own: 200, body: () => ({ overlap_seconds: 0 }) },
  revokeApiKey: { own: 204 },
  rotateWebhookSecret: { own: 200, body: () => ({ overlap_seconds: 0 }) },
  redeliverWebhook: { own: 202 },
  deleteWebhook: { own: 204 },
};

/** Every key may read its own description, and begin and end sessions of itself. */
const OF_EVERY_KEY = new Set<OperationId>(['getMe', 'createSignInCode', 'endSession', 'endSessions']);

/** A share reads its job, and ends sessions of itself. */
const OF_EVERY_SHARE = new Set<OperationId>([
  'getMe',
  'getJob',
  'getJobDocument',
  'listJobAttempts',
  'listJobCheckpoints',
  'listJobEvents',
  'listJobLogs',
  'listJobMetrics',
  'streamJob',
  'endSession',
]);

interface Operation {
  id: OperationId;
  method: string;
  path: string;
  scopes: readonly Scope[];
}

function operationsOf({ app }: TestStack): Operation[] {
  const { document, operations } = app.services.contract;
  const found = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]): Operation[] => {
      const id = Object(operation).operationId as OperationId;
      const known = operations.get(id);
      return known ? [{ id, method: method.toUpperCase(), path, scopes: known.scopes ?? [] }] : [];
    }),
  );
  const order = Object.keys(ROWS);
  return found.sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id));
}

async function fill(stack: TestStack): Promise<Ids> {
  const { store, objects } = stack;
  const ended = await stack.createJob();
  await store.requestCancel(ended.id);
  const job = await stack.createJob();
  const execution = await claimAndTrain(store, job.id, { steps: 1 });
  const checkpoint = checkpointOf(job.id, 2);
  await putTestCheckpoint(objects, checkpoint.prefix, { numels: [10], ranks: 2 }, checkpoint.id);
  await store.commitCheckpoint(job.id, execution, checkpoint);
  const model_id = `mdl_${ulid()}`;
  await store.putModel(testModel(model_id));
  const key = await store.putApiKey('zf_of_default', { name: 'theirs', scopes: ['jobs:read'] });
  const share = { job_id: job.id, description: 'for a review', life_ms: 3_600_000 };
  const { id: share_id } = await store.createShare(SHARE, share);
  const upload = await stack.request({
    method: 'POST',
    url: '/v1/uploads',
    payload: { name: 'u', bytes: 5 },
  });
  return {
    upload_id: upload.json<Upload>().id,
    part_number: '1',
    job_id: job.id,
    ended_job_id: ended.id,
    checkpoint_id: checkpoint.id,
    dataset_id: job.spec.data.dataset,
    model_id,
    key_id: key.id,
    share_id,
    ...(await fillWebhook(stack)),
    project: 'default',
  };
}

async function fillWebhook({ store }: TestStack): Promise<Pick<Ids, 'webhook_id' | 'delivery_id'>> {
  const [webhook_id, delivery_id] = [`wh_${ulid()}`, `dlv_${ulid()}`];
  const created_at = new Date().toISOString();
  const webhook = {
    id: webhook_id,
    url: 'https://hooks.example.com/',
    description: '',
    events: ['*'],
    created_at,
  };
  await store.createWebhook(
    'default',
    { ...webhook, jobs: 'all', enabled: true, disabled_reason: null },
    { secret: 'whsec_AA==', created_at, expires_at: null },
  );
  const data = { job_id: `job_${ulid()}`, seq: 1, position: '3fa91c0b-1-660da8a518800', details: {} };
  const message = { type: 'job.created', timestamp: created_at, data };
  await store.addDelivery({ id: delivery_id, webhook_id, message_id: `msg_${ulid()}`, message, created_at });
  return { webhook_id, delivery_id };
}

/** An unused id of the same kind. */
const unknown = (id: string) => id.replace(/_.*/, `_${'0'.repeat(26)}`);

function requestOf({ id, method, path }: Operation, ids: Ids): InjectOptions {
  const { body, query, headers = {}, path: instead } = ROWS[id];
  const at = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[instead ?? (name as keyof Ids)]);
  const payload = body?.(ids) as string | object | undefined;
  return {
    method: method as 'GET',
    url: query === undefined ? at : `${at}?${query}`,
    headers,
    ...(payload !== undefined && { payload }),
  };
}

t.test('every operation with every kind of key', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { app, store } = stack;
  const checker = new ContractChecker(app.services.contract);
  const ids = await fill(stack);
  const operations = operationsOf(stack);
  t.same(new Set(operations.map(({ id }) => id)), new Set(Object.keys(ROWS)));

  const send = async (operation: Operation, authorization: string | null, of = ids) => {
    const request = requestOf(operation, of);
    const headers = { ...request.headers, ...(authorization !== null && { authorization }) };
    const reply = await app.inject({ ...request, headers });
    checker.check(request, reply);
    return reply;
  };
  const key = async (name: string, scopes: Scope[], more = {}) => {
    const { id } = await store.putApiKey(`zf_${name}`, { name, scopes, ...more });
    return { id, authorization: `Bearer zf_${name}` };
  };

  const revoked = await key('revoked', ['admin', 'operator']);
  await store.revokeApiKey(revoked.id);
  const expired = await key('expired', ['admin', 'operator'], { expires_at: new Date(0).toISOString() });
  const refused: [string, string | null][] = [
    ['no key', null],
    ['an empty header', ''],
    ['no token', 'Bearer '],
    ['another scheme', 'Basic zf_of_default'],
    ['an unknown key', 'Bearer zf_unknown'],
    ['a key with trailing characters', 'Bearer zf_of_default x'],
    ['a key that is too long', `Bearer ${'z'.repeat(600)}`],
    ['a revoked key', revoked.authorization],
    ['an expired key', expired.authorization],
    ['an unknown share', `Bearer ${SHARE}x`],
  ];
  for (const operation of operations.filter(({ id }) => !ROWS[id].isOpen)) {
    for (const [what, authorization] of refused) {
      const reply = await send(operation, authorization);
      t.match(reply.json<Problem>(), { status: 401, code: 'unauthenticated' }, `${operation.id}: ${what}`);
      t.match(reply.headers['www-authenticate'], /^Bearer/);
    }
  }

  for (const operation of operations.filter(({ id }) => !ROWS[id].isOpen)) {
    t.equal(
      operation.scopes.length === 0,
      OF_EVERY_KEY.has(operation.id),
      `${operation.id} requires a scope`,
    );
    if (operation.scopes.length === 0) continue;
    const others = SCOPES.filter((scope) => scope !== 'admin' && !operation.scopes.includes(scope));
    const { authorization } = await key('others', others);
    const reply = await send(operation, authorization);
    t.match(
      reply.json<Problem>(),
      { status: 403, code: 'insufficient_scope' },
      `${operation.id}: wrong scopes`,
    );
  }

  const admin = await key('foreign', ['admin'], { project: 'team-b' });
  const none = Object.fromEntries(
    Object.entries(ids).map(([name, id]) => [name, unknown(id)]),
  ) as unknown as Ids;
  for (const operation of operations.filter(({ id }) => !ROWS[id].isOpen)) {
    const { foreign } = ROWS[operation.id];
    const reply = await send(operation, admin.authorization);
    if (foreign === undefined) {
      t.equal(reply.statusCode, 404, `${operation.id}: another project`);
      const unknownReply = await send(operation, admin.authorization, none);
      t.equal(
        masked(reply.body),
        masked(unknownReply.body),
        `${operation.id}: same answer as for an unknown id`,
      );
    } else {
      t.equal(reply.statusCode, foreign, `${operation.id}: another project: ${reply.body}`);
      // The error may quote ids that the request itself contained.
      const sent = JSON.stringify(requestOf(operation, ids));
      for (const id of Object.values(ids).filter(
        (known) => known.length > 1 && known !== ids.project && !sent.includes(known),
      ))
        t.notMatch(reply.body, id, `${operation.id} discloses ${id}`);
    }
  }

  for (const operation of operations) {
    const { authorization } = await key(
      'own',
      operation.scopes.length > 0 ? [...operation.scopes] : ['models'],
    );
    const reply = await send(operation, ROWS[operation.id].isOpen ? null : authorization);
    t.equal(reply.statusCode, ROWS[operation.id].own, `${operation.id}: its own project: ${reply.body}`);
  }
});

t.test('every operation with a share', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const checker = new ContractChecker(stack.app.services.contract);
  const ids = await fill(stack);
  const { id: job_id } = await stack.createJob();
  const token = `zf_share_${'j'.repeat(43)}`;
  await stack.store.createShare(token, { job_id, description: 'for a review', life_ms: 3_600_000 });
  const send = async (operation: Operation, of: Ids) => {
    const request = requestOf(operation, of);
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const reply = await stack.app.inject({ ...request, headers });
    checker.check(request, reply);
    return reply;
  };
  const withJob = (id: string): Ids => ({ ...ids, job_id: id, ended_job_id: id });
  const secrets = [ADMIN_KEY, 'whsec_AA==', token, SHARE, 'theirs', ids.webhook_id, ids.key_id];
  const operations = operationsOf(stack).filter(({ id }) => !ROWS[id].isOpen);
  const [read, refused] = [OF_EVERY_SHARE, (id: OperationId) => !OF_EVERY_SHARE.has(id)];
  for (const operation of operations.filter(({ id }) => refused(id)))
    for (const of of [ids, withJob(job_id)])
      t.match((await send(operation, of)).json(), { status: 403, code: 'outside_share' }, operation.id);

  // A stream does not end while its job lives.
  for (const operation of operations.filter(({ id }) => read.has(id) && id !== 'streamJob')) {
    const reply = await send(operation, withJob(job_id));
    t.equal(reply.statusCode, ROWS[operation.id].own, `${operation.id} of the shared job: ${reply.body}`);
    for (const secret of secrets) t.notOk(reply.body.includes(secret), `${operation.id} has ${secret}`);
  }
  for (const operation of operations.filter(({ id, path }) => read.has(id) && path.includes('{job_id}'))) {
    const other = await send(operation, ids);
    const missing = await send(operation, withJob(unknown(job_id)));
    t.equal(other.statusCode, 404, `${operation.id}: another job of the project`);
    t.equal(masked(other.body), masked(missing.body), `${operation.id}: as for an unknown id`);
  }
});

/** A reply with request-specific values masked. */
function masked(body: string): string {
  return body
    .replaceAll(/\b(job|ckpt|ds|mdl|key|shr|wh|dlv|upl)_\w{26}/g, 'ID')
    .replaceAll(/req_[\w-]+/g, 'REQ');
}
