/** Mutating requests for datasets, models, keys, webhooks and projects. */
import { ulid } from 'ulid';
import type { NewApiKey, Upload, WebhookWithSecret } from '../../../contracts/index.js';
import { modelFolder, tarOf, testModel } from '../../../formats/testing/models.js';
import { webhookOf } from '../filled-records.js';
import type { TestStack } from '../stack.js';
import { type Mutation, numOf, TEXT } from './mutation.js';

const now = () => new Date().toISOString();

const uploadOf = async (stack: TestStack): Promise<string> => {
  const payload = { name: 'three', bytes: TEXT.length };
  const { id } = (await stack.request({ method: 'POST', url: '/v1/uploads', payload })).json<Upload>();
  const headers = { 'content-type': 'application/octet-stream' };
  await stack.request({ method: 'PUT', url: `/v1/uploads/${id}/parts/1`, headers, payload: TEXT });
  return id;
};

/** No list of uploads exists. */
const numUploads =
  ({ objects }: TestStack) =>
  async () => {
    let found = 0;
    for await (const { key } of objects.list('uploads/')) if (key.endsWith('/upload.json')) found += 1;
    return found;
  };

export const RECORD_MUTATIONS = {
  createUpload: {
    status: 201,
    prepare: async (stack) => ({
      request: { method: 'POST', url: '/v1/uploads', payload: { name: 'three', bytes: 3 } },
      effects: numUploads(stack),
    }),
  },
  completeUpload: {
    status: 201,
    prepare: async (stack) => ({
      request: { method: 'POST', url: `/v1/uploads/${await uploadOf(stack)}/complete` },
      effects: numOf(stack, '/v1/datasets'),
    }),
  },
  deleteUpload: {
    status: 204,
    prepare: async (stack) => ({
      request: { method: 'DELETE', url: `/v1/uploads/${await uploadOf(stack)}` },
      effects: numUploads(stack),
    }),
  },
  createDataset: {
    status: 201,
    prepare: async (stack) => ({
      request: {
        method: 'POST',
        url: '/v1/datasets?name=three',
        headers: { 'content-type': 'text/plain' },
        payload: TEXT,
      },
      effects: numOf(stack, '/v1/datasets'),
    }),
  },
  deleteDataset: {
    status: 204,
    prepare: async (stack) => ({
      request: { method: 'DELETE', url: `/v1/datasets/${(await stack.upload(TEXT)).id}` },
      effects: numOf(stack, '/v1/datasets'),
    }),
  },
  updateDataset: {
    status: 200,
    prepare: async (stack) => {
      const { id } = await stack.upload(TEXT);
      return {
        request: { method: 'PATCH', url: `/v1/datasets/${id}`, payload: { name: 'renamed' } },
        effects: async () => Number((await stack.store.getDataset(id))?.name === 'renamed'),
      };
    },
  },
  updateModel: {
    status: 200,
    prepare: async (stack) => {
      const id = `mdl_${ulid()}`;
      await stack.store.putModel(testModel(id));
      return {
        request: { method: 'PATCH', url: `/v1/models/${id}`, payload: { name: 'renamed' } },
        effects: async () => Number((await stack.store.getModel(id))?.name === 'renamed'),
      };
    },
  },
  updateApiKey: {
    status: 200,
    prepare: async ({ store }) => {
      const { id } = await store.putApiKey(`zf_${ulid()}`, { name: 'three', scopes: ['jobs:read'] });
      return {
        request: { method: 'PATCH', url: `/v1/api-keys/${id}`, payload: { name: 'renamed' } },
        effects: async () => Number((await store.getApiKey(id))?.name === 'renamed'),
      };
    },
  },
  updateWebhook: {
    status: 200,
    prepare: async (stack) => {
      const { id } = await webhookOf(stack);
      return {
        request: { method: 'PATCH', url: `/v1/webhooks/${id}`, payload: { description: 'renamed' } },
        effects: async () => Number((await stack.store.getWebhook('default', id))?.description === 'renamed'),
      };
    },
  },
  createModel: {
    status: 201,
    prepare: async (stack) => ({
      request: {
        method: 'POST',
        url: '/v1/models?name=three',
        headers: { 'content-type': 'application/x-tar' },
        payload: await tarOf(modelFolder()),
      },
      effects: numOf(stack, '/v1/models'),
    }),
  },
  deleteModel: {
    status: 204,
    prepare: async (stack) => {
      const id = `mdl_${ulid()}`;
      await stack.store.putModel(testModel(id));
      return {
        request: { method: 'DELETE', url: `/v1/models/${id}` },
        effects: numOf(stack, '/v1/models'),
      };
    },
  },
  createApiKey: {
    status: 201,
    showsSecret: true,
    prepare: async (stack) => ({
      request: { method: 'POST', url: '/v1/api-keys', payload: { name: 'three', scopes: ['jobs:read'] } },
      effects: numOf(stack, '/v1/api-keys'),
    }),
  },
  rotateApiKey: {
    status: 200,
    showsSecret: true,
    prepare: async ({ store }) => {
      const { id } = await store.putApiKey(`zf_${ulid()}`, { name: 'three', scopes: ['jobs:read'] });
      const secret = `zf_${ulid()}`;
      await store.rotateApiKey(id, secret, 60_000);
      const request = { method: 'POST', url: `/v1/api-keys/${id}/rotate`, payload: {} };
      return {
        request,
        // A second rotation would end the previous secret.
        effects: async (answered) => {
          const shown = answered.flatMap((reply) => reply.json<Partial<NewApiKey>>().secret ?? []);
          const found = await Promise.all([secret, ...shown].map((one) => store.findApiKey(one)));
          return found.filter((key) => key?.id === id).length;
        },
      };
    },
  },
  endSessionsOf: {
    status: 204,
    prepare: async ({ store }) => {
      const { id } = await store.putApiKey(`zf_${ulid()}`, { name: 'three', scopes: ['jobs:read'] });
      const token = ulid();
      await store.createSession(token, { principal_id: id }, { secure: false });
      return {
        request: { method: 'DELETE', url: `/v1/principals/${id}/sessions` },
        effects: async () => Number((await store.findSession(token)) === null),
      };
    },
  },
  revokeApiKey: {
    status: 204,
    prepare: async (stack) => {
      const { id } = await stack.store.putApiKey(`zf_${ulid()}`, { name: 'three', scopes: ['jobs:read'] });
      return {
        request: { method: 'DELETE', url: `/v1/api-keys/${id}` },
        effects: numOf(stack, '/v1/api-keys'),
      };
    },
  },
  createShare: {
    status: 201,
    showsSecret: true,
    prepare: async (stack) => {
      const jobId = (await stack.createJob()).id;
      const effects = async () => (await stack.store.listShares(jobId)).length;
      return { request: { method: 'POST', url: `/v1/jobs/${jobId}/shares`, payload: {} }, effects };
    },
  },
  revokeShare: {
    status: 204,
    prepare: async (stack) => {
      const jobId = (await stack.createJob()).id;
      const { store } = stack;
      const share = { job_id: jobId, description: '', life_ms: 60_000 };
      const { id } = await store.createShare(`zf_share_${ulid()}`, share);
      return {
        request: { method: 'DELETE', url: `/v1/jobs/${jobId}/shares/${id}` },
        effects: async () => (await store.listShares(jobId)).length,
      };
    },
  },
  createWebhook: {
    status: 201,
    showsSecret: true,
    prepare: async (stack) => ({
      request: { method: 'POST', url: '/v1/webhooks', payload: { url: 'https://hooks.example.com/three' } },
      effects: numOf(stack, '/v1/webhooks'),
    }),
  },
  rotateWebhookSecret: {
    status: 200,
    showsSecret: true,
    prepare: async (stack) => {
      const { id, secret } = await webhookOf(stack);
      return {
        request: { method: 'POST', url: `/v1/webhooks/${id}/rotate-secret`, payload: {} },
        effects: async (answered) => {
          const shown = answered.flatMap((reply) => reply.json<Partial<WebhookWithSecret>>().secret ?? []);
          const { secrets = [] } = (await stack.store.webhookTarget(id)) ?? {};
          return secrets.filter((one) => one === secret || shown.includes(one)).length;
        },
      };
    },
  },
  pingWebhook: {
    status: 202,
    prepare: async (stack) => {
      const { id } = await webhookOf(stack);
      return {
        request: { method: 'POST', url: `/v1/webhooks/${id}/ping` },
        effects: async () => (await stack.store.listDeliveries('default', id))?.data.length ?? 0,
      };
    },
  },
  deleteWebhook: {
    status: 204,
    prepare: async (stack) => ({
      request: { method: 'DELETE', url: `/v1/webhooks/${(await webhookOf(stack)).id}` },
      effects: numOf(stack, '/v1/webhooks'),
    }),
  },
  redeliverWebhook: {
    status: 202,
    prepare: async (stack) => {
      const [{ id: webhookId }, id] = [await webhookOf(stack), `dlv_${ulid()}`];
      const data = { job_id: `job_${ulid()}`, seq: 1, position: '3fa91c0b-1-660da8a518800', details: {} };
      const message = { type: 'job.created', timestamp: now(), data };
      const delivery = { id, webhook_id: webhookId, message_id: `msg_${ulid()}`, message, created_at: now() };
      await stack.store.addDelivery(delivery);
      const attempt = { at: now(), duration_ms: 1, status: 500, error: 'refused_by_receiver' } as const;
      const record = { webhook_id: webhookId, delivery_id: id, round: 1, attempt, next_attempt_at: null };
      await stack.store.recordAttempt({ ...record, state: 'failed' });
      return {
        request: { method: 'POST', url: `/v1/webhooks/${webhookId}/deliveries/${id}/redeliver` },
        // It is to be sent again; further requests change nothing while it is.
        effects: async () => Number((await stack.store.getDelivery(webhookId, id))?.state === 'pending'),
      };
    },
  },
  putHubToken: {
    status: 200,
    prepare: async ({ store }) => ({
      request: { method: 'PUT', url: '/v1/hub-token', payload: { token: 'hf_0123456789' } },
      effects: async () => Number((await store.findHubToken('default')) === 'hf_0123456789'),
    }),
  },
  deleteHubToken: {
    status: 204,
    prepare: async ({ store }) => {
      await store.putHubToken('default', 'hf_0123456789');
      const effects = async () => Number((await store.findHubToken('default')) === null);
      return { request: { method: 'DELETE', url: '/v1/hub-token' }, effects };
    },
  },
  putProject: {
    status: 200,
    prepare: async ({ store }) => ({
      request: { method: 'PUT', url: '/v1/projects/three', payload: { quota: { max_jobs: 7 } } },
      effects: async () => Number((await store.getQuota('three')).max_jobs === 7),
    }),
  },
} satisfies Record<string, Mutation>;
