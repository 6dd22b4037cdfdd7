import {
  type Webhook,
  type WebhookPatch,
  type WebhookWithSecret,
  ZerofleetError,
} from '../../../contracts/index.js';
import type { AddressPolicy } from '../../../platform/outgoing/addresses.js';
import { newSecret } from '../../../platform/outgoing/signature.js';
import { newUlid } from '../../../platform/random.js';
import type { WebhookSecret } from '../../../state/index.js';
import { patched } from '../../access/change-record.js';
import { found, notFound } from '../../access/found.js';
import { sendRecord } from '../../http/etag.js';
import { invalidDocument } from '../../jobs/check-spec.js';
import { pingOf } from '../../webhooks/messages.js';
import type { OperationHandler } from '../types.js';

const DEFAULT_OVERLAP_SECONDS = 86_400;

export const createWebhook: OperationHandler<'createWebhook'> = async (
  request,
  reply,
): Promise<WebhookWithSecret> => {
  const { store, addresses } = request.server.services;
  const { url, description = '', events = ['*'], jobs = 'all', enabled = true } = request.body;
  requireUrl(addresses, url);
  const secret = secretOf(new Date());
  const { created_at } = secret;
  const id = `wh_${newUlid()}`;
  const document = { id, url, description, events, jobs, enabled, disabled_reason: null, created_at };
  const webhook = await store.createWebhook(request.records.project, document, secret);
  reply.code(201).header('location', `/v1/webhooks/${webhook.id}`);
  return { ...webhook, secret: secret.secret };
};

export const listWebhooks: OperationHandler<'listWebhooks'> = (request) =>
  request.server.services.store.listWebhooks(request.records.project, request.query);

/** Fields that `updateWebhook` can change. */
const CHANGEABLE = [
  'url',
  'description',
  'events',
  'jobs',
  'enabled',
] as const satisfies (keyof WebhookPatch)[];

export const getWebhook: OperationHandler<'getWebhook'> = async (request, reply) => {
  const { webhook_id: id } = request.params;
  const webhook = await request.server.services.store.getWebhook(request.records.project, id);
  return sendRecord(reply, found(webhook, 'webhook', id), CHANGEABLE);
};

export const updateWebhook: OperationHandler<'updateWebhook'> = async (request, reply) => {
  const { webhook_id: id } = request.params;
  const { store, addresses } = request.server.services;
  if (request.body.url !== undefined) requireUrl(addresses, request.body.url);
  const change = patched<Webhook>(request, CHANGEABLE);
  const webhook = await store.updateWebhook(request.records.project, id, (before) => {
    const after = change(before);
    return after.enabled ? { ...after, disabled_reason: null } : after;
  });
  return sendRecord(reply, found(webhook, 'webhook', id), CHANGEABLE);
};

export const deleteWebhook: OperationHandler<'deleteWebhook'> = async (request, reply) => {
  const { webhook_id: id } = request.params;
  const { store } = request.server.services;
  if (!(await store.deleteWebhook(request.records.project, id))) throw notFound('webhook', id);
  return reply.code(204).send();
};

export const rotateWebhookSecret: OperationHandler<'rotateWebhookSecret'> = async (
  request,
): Promise<WebhookWithSecret> => {
  const { webhook_id: id } = request.params;
  const { overlap_seconds = DEFAULT_OVERLAP_SECONDS } = request.body;
  const now = new Date();
  const secret = secretOf(now);
  const until = new Date(now.getTime() + overlap_seconds * 1000).toISOString();
  const { store } = request.server.services;
  const webhook = await store.rotateWebhookSecret(request.records.project, id, { secret, until });
  return { ...found(webhook, 'webhook', id), secret: secret.secret };
};

export const listWebhookDeliveries: OperationHandler<'listWebhookDeliveries'> = async (request) => {
  const { webhook_id: id } = request.params;
  const page = await request.server.services.store.listDeliveries(request.records.project, id, request.query);
  return found(page, 'webhook', id);
};

export const pingWebhook: OperationHandler<'pingWebhook'> = async (request, reply) => {
  const { webhook_id } = request.params;
  const delivery = pingOf(webhook_id, new Date());
  if (!(await request.server.services.store.sendDelivery(request.records.project, delivery)))
    throw notFound('webhook', webhook_id);
  return reply.code(202).send({ ...delivery, state: 'pending', next_attempt_at: null, attempts: [] });
};

export const redeliverWebhook: OperationHandler<'redeliverWebhook'> = async (request, reply) => {
  const { webhook_id, delivery_id } = request.params;
  const { store } = request.server.services;
  const delivery = await store.requestRedelivery(request.records.project, webhook_id, delivery_id);
  if (delivery === null)
    throw new ZerofleetError('delivery_not_found', `the log of ${webhook_id} has no ${delivery_id}`);
  return reply.code(202).send(delivery);
};

/** @throws ZerofleetError `validation_failed` for a forbidden address */
function requireUrl(addresses: AddressPolicy, url: string): void {
  const message = addresses.objectionTo(url);
  if (message !== null) throw invalidDocument([{ pointer: '/url', code: 'webhook_url_refused', message }]);
}

function secretOf(now: Date): WebhookSecret {
  return { secret: newSecret(), created_at: now.toISOString(), expires_at: null };
}
