/** Every operation of the contract, with a request to records of project `default`. */
import type { InjectOptions } from 'fastify';
import { ulid } from 'ulid';
import type { OperationId, Scope, Upload } from '../../contracts/index.js';
import { putTestCheckpoint, testParams } from '../../formats/testing/checkpoints.js';
import { testModel } from '../../formats/testing/models.js';
import { fillSweep, fillWebhook } from './filled-records.js';
import { createSession } from './sessions.js';
import { smallSpec, smallSweep, type TestStack } from './stack.js';
import { checkpointOf, claimAndTrain } from './training.js';

/** Ids of the records of project `default`, by path parameter name. */
export interface Ids {
  job_id: string;
  ended_job_id: string;
  session_id: string;
  /** Of a call. */
  number: string;
  checkpoint_id: string;
  dataset_id: string;
  upload_id: string;
  part_number: string;
  model_id: string;
  key_id: string;
  share_id: string;
  sweep_id: string;
  webhook_id: string;
  delivery_id: string;
  project: string;
  /** Of a tensor. */
  name: string;
  edit_id: string;
}

/**
 * One operation.
 * - `own`: the status for a key of the project with exactly the scope that the contract requires. It shows that the
 *   request is valid, so the other refusals are caused by the key.
 * - `foreign`: the status for an admin key of another project. Without it, the operation must take an id from the path
 *   and answer exactly as for an unknown id. In both cases the answer contains nothing of the project.
 */
interface Row {
  own: number;
  foreign?: number;
  body?: (ids: Ids) => unknown;
  query?: string;
  headers?: Record<string, string>;
  /** The id for the first parameter of the path, if it differs from the parameter's name. */
  path?: keyof Ids;
  /** The operation needs no key. */
  isOpen?: true;
}

export const SHARE = `zf_share_${'s'.repeat(43)}`;

const TENSOR = 'model.tensor_of_theirs.weight';

const text = { 'content-type': 'text/plain' };
const EXACT = {
  type: 'string_check',
  name: 'exact',
  input: '{{sample.output_text}}',
  reference: 'a',
  operation: 'eq',
};
const TEXT = 'to be or not to be, that is the question. '.repeat(20);

/** Ordered: operations that end or delete a record come last. */
export const ROWS: { readonly [Id in OperationId]: Row } = {
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
  listUsers: { own: 200, foreign: 200 },
  listSweeps: { own: 200, foreign: 200 },
  listWebhooks: { own: 200, foreign: 200 },
  getUsage: { own: 200, foreign: 200 },
  getMe: { own: 200, foreign: 200 },
  createSignInCode: { own: 201, foreign: 201 },
  // Sessions belong to the calling key.
  endSession: { own: 204, foreign: 204 },
  endSessions: { own: 204, foreign: 204 },
  listCheckpoints: { own: 200, foreign: 200 },
  getHubToken: { own: 200, foreign: 200 },
  putHubToken: { own: 200, foreign: 200, body: () => ({ token: 'hf_0123456789' }) },
  deleteHubToken: { own: 204, foreign: 204 },
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
  runGrader: { own: 200, foreign: 200, body: () => ({ grader: EXACT, output_text: 'a' }) },
  validateGrader: { own: 200, foreign: 200, body: () => ({ grader: EXACT }) },
  previewData: { own: 200, foreign: 422, body: ({ dataset_id }) => ({ spec: smallSpec(dataset_id) }) },

  putCall: {
    own: 202,
    path: 'session_id',
    headers: { 'content-type': 'application/json' },
    body: () => ({ type: 'save_state' }),
  },
  listCalls: { own: 200, path: 'session_id' },
  getCall: { own: 200, path: 'session_id' },
  getCallResult: { own: 200, path: 'session_id' },
  getRollout: { own: 409 },

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
  getCheckpointArchive: { own: 200 },
  getCheckpointFile: { own: 200, query: 'name=MANIFEST.json' },
  verifyCheckpoint: { own: 200 },
  listCheckpointTensors: { own: 200 },
  getCheckpointTensor: { own: 200 },
  getDataset: { own: 200 },
  getDatasetContent: { own: 200 },
  getUpload: { own: 200 },
  getModel: { own: 200 },
  getApiKey: { own: 200 },
  getSweep: { own: 200 },
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
  createSweep: { own: 201, foreign: 422, body: ({ dataset_id }) => smallSweep(dataset_id) },
  pauseSweep: { own: 202 },
  resumeSweep: { own: 202 },
  cancelSweep: { own: 202 },
  deleteSweep: { own: 204 },

  // No worker takes samples or exports here: the request reached the timeout.
  sampleCheckpoint: { own: 504, body: () => ({ prompt: 'a' }) },
  sampleModel: { own: 504, body: () => ({ prompt: 'a' }) },
  exportCheckpoint: { own: 503, body: () => ({}) },
  // The job is running.
  putCheckpointTensor: {
    own: 409,
    headers: { 'content-type': 'application/octet-stream' },
    body: () => 'values',
  },
  getTensorEdit: { own: 404 },
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
  endSessionsOf: { own: 204, path: 'key_id' },
  revokeApiKey: { own: 204 },
  rotateWebhookSecret: { own: 200, body: () => ({ overlap_seconds: 0 }) },
  redeliverWebhook: { own: 202 },
  deleteWebhook: { own: 204 },
};

export interface Operation {
  id: OperationId;
  method: string;
  path: string;
  scopes: readonly Scope[];
}

export function operationsOf({ app }: TestStack): Operation[] {
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

export async function fill(stack: TestStack): Promise<Ids> {
  const { store, objects } = stack;
  const ended = await stack.createJob();
  await store.requestCancel(ended.id);
  const job = await stack.createJob();
  const execution = await claimAndTrain(store, job.id, { steps: 1 });
  const checkpoint = checkpointOf(job.id, 2);
  const shape = { numels: [10], ranks: 2 };
  const params = testParams(shape).map((param) => ({ ...param, name: TENSOR }));
  await putTestCheckpoint(objects, checkpoint.prefix, shape, checkpoint.id, { params });
  await store.commitCheckpoint(job.id, execution, checkpoint);
  const modelId = `mdl_${ulid()}`;
  await store.putModel(testModel(modelId));
  const key = await store.putApiKey('zf_of_default', { name: 'theirs', scopes: ['jobs:read'] });
  const share = { job_id: job.id, description: 'for a review', life_ms: 3_600_000 };
  const { id: shareId } = await store.createShare(SHARE, share);
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
    session_id: (await createSession(stack)).id,
    number: '1',
    checkpoint_id: checkpoint.id,
    dataset_id: job.spec.data.dataset ?? '',
    model_id: modelId,
    key_id: key.id,
    share_id: shareId,
    sweep_id: await fillSweep(stack, job.spec.data.dataset ?? ''),
    ...(await fillWebhook(stack)),
    project: 'default',
    name: TENSOR,
    edit_id: '1e'.repeat(16),
  };
}

/** An unused id of the same kind. */
export const unknown = (id: string) => id.replace(/_.*/, `_${'0'.repeat(26)}`);

export function requestOf({ id, method, path }: Operation, ids: Ids): InjectOptions {
  const { body, query, headers = {}, path: instead } = ROWS[id];
  const at = path
    .replace(/\{\w+\}/, (parameter) => (instead === undefined ? parameter : ids[instead]))
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name as keyof Ids]);
  const payload = body?.(ids) as string | object | undefined;
  return {
    method: method as 'GET',
    url: query === undefined ? at : `${at}?${query}`,
    headers,
    ...(payload !== undefined && { payload }),
  };
}

/** A reply with request-specific values masked. */
export function masked(body: string): string {
  return body
    .replaceAll(/\b(job|ckpt|ds|mdl|key|shr|swp|wh|dlv|upl)_\w{26}/g, 'ID')
    .replaceAll(/req_[\w-]+/g, 'REQ');
}
