import type { Delivery, Webhook, WebhookPatch, WebhookSpec, WebhookWithSecret } from '../contracts/types.js';
import { allPages, type ListQuery } from './pages.js';
import { bodyOf, type Http, type Match, matchHeader } from './transport.js';

export class Webhooks {
  constructor(private readonly http: Http) {}

  /** Has events of jobs sent to a URL. The secret of the answer checks the signatures; it is not told again. */
  create(spec: WebhookSpec): Promise<WebhookWithSecret> {
    return bodyOf('new webhook', this.http.POST('/v1/webhooks', { body: spec }));
  }

  get(webhook_id: string): Promise<Webhook> {
    const params = { path: { webhook_id } };
    return bodyOf(`webhook ${webhook_id}`, this.http.GET('/v1/webhooks/{webhook_id}', { params }));
  }

  /** All webhooks, newest first, or those with a URL. */
  list(query: ListQuery<'listWebhooks'> = {}): AsyncIterable<Webhook> {
    return allPages((after) =>
      bodyOf('list of webhooks', this.http.GET('/v1/webhooks', { params: { query: { ...query, after } } })),
    );
  }

  /** Changes what is named; with `ifMatch`, the ETag of an answer, only if nobody has meanwhile. */
  update(webhook_id: string, body: WebhookPatch, match: Match = {}): Promise<Webhook> {
    const params = { path: { webhook_id }, ...matchHeader(match) };
    return bodyOf(`change of ${webhook_id}`, this.http.PATCH('/v1/webhooks/{webhook_id}', { params, body }));
  }

  async delete(webhook_id: string): Promise<void> {
    const params = { path: { webhook_id } };
    await bodyOf(`delete ${webhook_id}`, this.http.DELETE('/v1/webhooks/{webhook_id}', { params }));
  }

  /** Gives it a new secret; the one of before signs as well for so many seconds, a day if nothing is said. */
  rotateSecret(webhook_id: string, overlapSeconds?: number): Promise<WebhookWithSecret> {
    return bodyOf(
      `new secret of ${webhook_id}`,
      this.http.POST('/v1/webhooks/{webhook_id}/rotate-secret', {
        params: { path: { webhook_id } },
        body: overlapSeconds === undefined ? {} : { overlap_seconds: overlapSeconds },
      }),
    );
  }

  /** What was sent to it, newest first. */
  deliveries(webhook_id: string): AsyncIterable<Delivery> {
    return allPages((after) =>
      bodyOf(
        `deliveries of ${webhook_id}`,
        this.http.GET('/v1/webhooks/{webhook_id}/deliveries', {
          params: { path: { webhook_id }, query: { after } },
        }),
      ),
    );
  }

  /** Has a message sent again. */
  redeliver(webhook_id: string, delivery_id: string): Promise<Delivery> {
    const params = { path: { webhook_id, delivery_id } };
    return bodyOf(
      `delivery ${delivery_id}`,
      this.http.POST('/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver', { params }),
    );
  }
}
