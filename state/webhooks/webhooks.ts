import type { Page, Webhook } from '../../contracts/index.js';
import { redisCall, type StoreContext, untilUnchanged } from '../core/context.js';
import { readPage } from '../core/listing.js';
import type { PageRequest } from '../core/paging.js';
import { webhookDeliveries } from './webhook-deliveries.js';

/** Signing secret of messages. Stored in plain text: unlike an API key it is needed again. */
export interface WebhookSecret {
  /** `whsec_` and base64. */
  secret: string;
  created_at: string;
  /** Null for the newest secret. */
  expires_at: string | null;
}

/** Configuration of a webhook; the other fields result from its use. */
type WebhookDocument = Omit<Webhook, 'secrets' | 'failing_since'>;

/** A webhook in the form that the sender needs. */
export interface WebhookTarget {
  project: string;
  webhook: Webhook;
  /** Secrets that sign now, newest first. */
  secrets: string[];
}

interface WebhookFilter extends PageRequest {
  id_prefix?: string;
  url?: string;
}

const MAX_WEBHOOKS = 100;

/** A webhook in the form of its hash. */
interface Stored {
  project: string;
  document: WebhookDocument;
  secrets: WebhookSecret[];
  failing_since: string | null;
}

/**
 * Webhooks: subscriptions to events, and the log of messages.
 *
 * At-least-once: an event and its entry in the webhook outbox are written atomically, and so are a new round
 * of a message and its entry. The relay (webhook-relay.ts) delivers each entry at least once.
 *
 * Excluded: sending. The sender records each attempt here.
 */
export type Webhooks = ReturnType<typeof webhooks>;

export function webhooks(context: StoreContext) {
  const { redis, prefix, commands } = context;
  const indexOf = (project: string) => `${prefix}:project:${project}:webhooks`;

  async function read(id: string): Promise<Stored | null> {
    return parse(await redisCall(redis.hgetall(webhookKey(prefix, id))));
  }

  async function readOf(project: string, id: string): Promise<Stored | null> {
    const found = await read(id);
    return found?.project === project ? found : null;
  }

  const getWebhook = async (project: string, id: string) => {
    const found = await readOf(project, id);
    return found && shown(found);
  };

  return {
    ...webhookDeliveries(context, async (project, id) => (await readOf(project, id)) !== null),

    /** @throws `too_many_webhooks` */
    async createWebhook(project: string, document: WebhookDocument, secret: WebhookSecret): Promise<Webhook> {
      await commands.run('create_webhook', {
        webhook_id: document.id,
        project,
        document: JSON.stringify(document),
        secrets: JSON.stringify([secret]),
        limit: MAX_WEBHOOKS,
      });
      return shown({ project, document, secrets: [secret], failing_since: null });
    },

    /** Returns null when the project has no such webhook. */
    getWebhook,

    /** Newest first. */
    listWebhooks(project: string, { url, ...page }: WebhookFilter = {}): Promise<Page<Webhook>> {
      const load = (ids: string[]) => Promise.all(ids.map((id) => getWebhook(project, id)));
      // A project has too few webhooks for a separate index.
      const matches = (webhook: Webhook) => url === undefined || webhook.url === url;
      return readPage(context, { indexes: [indexOf(project)], page, load, matches });
    },

    /** Deletes a webhook and its log. Returns false when the project has no such webhook. */
    async deleteWebhook(project: string, id: string): Promise<boolean> {
      const [deleted] = await commands.run('delete_webhook', { webhook_id: id, project });
      return deleted === '1';
    },

    /**
     * Replaces a webhook with the result of `update`, which may be called more than once; secrets stay.
     * Returns null when the project has no such webhook.
     */
    updateWebhook: (
      project: string,
      id: string,
      update: (before: Webhook) => Webhook,
    ): Promise<Webhook | null> =>
      change(context, project, id, 'document', (before) => {
        const { secrets: _, failing_since: __, ...to } = update(shown(before));
        return to;
      }),

    /**
     * Adds a new secret; the previous one signs as well until `until`, older ones no longer. Returns null
     * when the project has no such webhook.
     */
    rotateWebhookSecret: (
      project: string,
      id: string,
      { secret, until }: { secret: WebhookSecret; until: string },
    ): Promise<Webhook | null> =>
      change(context, project, id, 'secrets', ({ secrets: [newest] }) =>
        newest === undefined ? [secret] : [secret, { ...newest, expires_at: until }],
      ),

    /** Returns all webhooks of a project. */
    async webhooksOf(project: string): Promise<Webhook[]> {
      const ids = await redisCall(redis.zrange(indexOf(project), '0', '-1'));
      const found = await Promise.all(ids.map((id) => getWebhook(project, id)));
      return found.filter((webhook) => webhook !== null);
    },

    /** Returns null when the webhook was deleted. */
    async webhookTarget(id: string): Promise<WebhookTarget | null> {
      const found = await read(id);
      if (found === null) return null;
      const secrets = live(found.secrets).map(({ secret }) => secret);
      return { project: found.project, webhook: shown(found), secrets };
    },
  };
}

/** Returns the URL and the secrets of a webhook that is enabled; null if the project has none of this id. */
export async function enabledTarget(
  store: Pick<Webhooks, 'webhookTarget'>,
  project: string,
  id: string,
): Promise<{ url: string; secrets: readonly string[] } | null> {
  const target = await store.webhookTarget(id);
  if (target === null || target.project !== project || !target.webhook.enabled) return null;
  return { url: target.webhook.url, secrets: target.secrets };
}

const webhookKey = (prefix: string, id: string) => `${prefix}:webhook:${id}`;

/** Returns null when the project has no such webhook. */
function change<F extends 'document' | 'secrets'>(
  { redis, prefix, commands }: StoreContext,
  project: string,
  id: string,
  field: F,
  make: (before: Stored) => Stored[F],
): Promise<Webhook | null> {
  return untilUnchanged(id, async () => {
    const texts = await redisCall(redis.hgetall(webhookKey(prefix, id)));
    const before = parse(texts);
    if (before?.project !== project) return null;
    const to = make(before);
    const call = { webhook_id: id, project, field, from: texts[field], to: JSON.stringify(to) };
    const [changed] = await commands.run('change_webhook', call);
    return changed === '1' ? shown({ ...before, [field]: to, failing_since: null }) : undefined;
  });
}

function parse({ project, document, secrets, failing_since = '' }: Record<string, string>): Stored | null {
  if (project === undefined || document === undefined || secrets === undefined) return null;
  return {
    project,
    document: JSON.parse(document),
    secrets: JSON.parse(secrets),
    failing_since: failing_since || null,
  };
}

function live(secrets: readonly WebhookSecret[]): WebhookSecret[] {
  const now = new Date().toISOString();
  return secrets.filter(({ expires_at }) => expires_at === null || expires_at > now);
}

/** Returns the public form of a webhook: the validity of its live secrets without their values. */
function shown({ document, secrets, failing_since }: Stored): Webhook {
  const times = live(secrets).map(({ created_at, expires_at }) => ({ created_at, expires_at }));
  return { ...document, failing_since, secrets: times };
}
