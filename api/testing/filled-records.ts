/** Records of project `default` for every-operation.ts. */
import { ulid } from 'ulid';
import type { Sweep } from '../../contracts/index.js';
import { smallSweep, type TestStack } from './stack.js';

export async function fillSweep(stack: TestStack, dataset: string): Promise<string> {
  const payload = smallSweep(dataset);
  return (await stack.request({ method: 'POST', url: '/v1/sweeps', payload })).json<Sweep>().id;
}

export async function webhookOf({ store }: TestStack): Promise<{ id: string; secret: string }> {
  const [id, secret, createdAt] = [`wh_${ulid()}`, 'whsec_AA==', new Date().toISOString()];
  const webhook = {
    id,
    url: 'https://hooks.example.com/',
    description: '',
    events: ['*'],
    created_at: createdAt,
  };
  await store.createWebhook(
    'default',
    { ...webhook, jobs: 'all', enabled: true, disabled_reason: null },
    { secret, created_at: createdAt, expires_at: null },
  );
  return { id, secret };
}

export async function fillWebhook(stack: TestStack): Promise<{ webhook_id: string; delivery_id: string }> {
  const [{ id: webhookId }, deliveryId] = [await webhookOf(stack), `dlv_${ulid()}`];
  const createdAt = new Date().toISOString();
  const data = { job_id: `job_${ulid()}`, seq: 1, position: '3fa91c0b-1-660da8a518800', details: {} };
  const message = { type: 'job.created', timestamp: createdAt, data };
  await stack.store.addDelivery({
    id: deliveryId,
    webhook_id: webhookId,
    message_id: `msg_${ulid()}`,
    message,
    created_at: createdAt,
  });
  return { webhook_id: webhookId, delivery_id: deliveryId };
}
