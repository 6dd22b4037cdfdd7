import type {
  Delivery,
  Webhook,
  WebhookPatch,
  WebhookSpec,
  WebhookWithSecret,
} from '../../contracts/types.js';
import { allPages, type ListQuery } from './pages.js';
import { bodyOf, type Http, type Match, matchHeader } from './transport.js';

export class Webhooks {
  constructor(private readonly http: Http) {}

  /** Creates a webhook that sends events of jobs to a URL. Only this answer contains the secret of its signatures. */
  create(spec: WebhookSpec): Promise<WebhookWithSecret> {
    return bodyOf('new webhook', this.http.POST('/v1/webhooks', { body: spec }));
  }

  get(webhookId: string): Promise<Webhook> {
    const params = { path: { webhook_id: webhookId } };
    return bodyOf(`webhook ${webhookId}`, this.http.GET('/v1/webhooks/{webhook_id}', { params }));
  }

  /** Webhooks, newest first, optionally filtered by URL. */
  list(query: ListQuery<'listWebhooks'> = {}): AsyncIterable<Webhook> {
    return allPages((after) =>
      bodyOf('list of webhooks', this.http.GET('/v1/webhooks', { params: { query: { ...query, after } } })),
    );
  }

  /** Changes the given fields; with `ifMatch`, the ETag of an answer, only if the record is unchanged. */
  update(webhookId: string, body: WebhookPatch, match: Match = {}): Promise<Webhook> {
    const params = { path: { webhook_id: webhookId }, ...matchHeader(match) };
    return bodyOf(`change of ${webhookId}`, this.http.PATCH('/v1/webhooks/{webhook_id}', { params, body }));
  }

  async delete(webhookId: string): Promise<void> {
    const params = { path: { webhook_id: webhookId } };
    await bodyOf(`delete ${webhookId}`, this.http.DELETE('/v1/webhooks/{webhook_id}', { params }));
  }

  /** Creates a new secret; the previous one also signs for `overlapSeconds`, a day by default. */
  rotateSecret(webhookId: string, overlapSeconds?: number): Promise<WebhookWithSecret> {
    return bodyOf(
      `new secret of ${webhookId}`,
      this.http.POST('/v1/webhooks/{webhook_id}/rotate-secret', {
        params: { path: { webhook_id: webhookId } },
        body: overlapSeconds === undefined ? {} : { overlap_seconds: overlapSeconds },
      }),
    );
  }

  /** Sends a `webhook.ping` message; its delivery shows the result. */
  ping(webhookId: string): Promise<Delivery> {
    const params = { path: { webhook_id: webhookId } };
    return bodyOf(`ping of ${webhookId}`, this.http.POST('/v1/webhooks/{webhook_id}/ping', { params }));
  }

  /** Deliveries, newest first. */
  deliveries(webhookId: string): AsyncIterable<Delivery> {
    return allPages((after) =>
      bodyOf(
        `deliveries of ${webhookId}`,
        this.http.GET('/v1/webhooks/{webhook_id}/deliveries', {
          params: { path: { webhook_id: webhookId }, query: { after, limit: 100 } },
        }),
      ),
    );
  }

  /** Sends a message again. */
  redeliver(webhookId: string, deliveryId: string): Promise<Delivery> {
    const params = { path: { webhook_id: webhookId, delivery_id: deliveryId } };
    return bodyOf(
      `delivery ${deliveryId}`,
      this.http.POST('/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver', { params }),
    );
  }
}
