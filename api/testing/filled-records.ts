/** Records of project `default` for every-operation.ts. */
import { ulid } from 'ulid';
import type { Sweep } from '../../contracts/index.js';
import { smallSweep, type TestStack } from './stack.js';

export async function fillSweep(stack: TestStack, dataset: string): Promise<string> {
  const payload = smallSweep(dataset);
  return (await stack.request({ method: 'POST', url: '/v1/sweeps', payload })).json<Sweep>().id;
}

export async function fillWebhook({
  store,
}: TestStack): Promise<{ webhook_id: string; delivery_id: string }> {
  const [webhookId, deliveryId] = [`wh_${ulid()}`, `dlv_${ulid()}`];
  const createdAt = new Date().toISOString();
  const webhook = {
    id: webhookId,
    url: 'https://hooks.example.com/',
    description: '',
    events: ['*'],
    created_at: createdAt,
  };
  await store.createWebhook(
    'default',
    { ...webhook, jobs: 'all', enabled: true, disabled_reason: null },
    { secret: 'whsec_AA==', created_at: createdAt, expires_at: null },
  );
  const data = { job_id: `job_${ulid()}`, seq: 1, position: '3fa91c0b-1-660da8a518800', details: {} };
  const message = { type: 'job.created', timestamp: createdAt, data };
  await store.addDelivery({
    id: deliveryId,
    webhook_id: webhookId,
    message_id: `msg_${ulid()}`,
    message,
    created_at: createdAt,
  });
  return { webhook_id: webhookId, delivery_id: deliveryId };
}
