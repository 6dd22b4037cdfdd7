import type { Page, Webhook } from '../../contracts/index.js';
import { redisCall, type StoreContext, untilUnchanged } from '../core/context.js';
import { readPage } from '../core/listing.js';
import { webhookDeliveries } from './webhook-deliveries.js';
import type { WebhookDocument, WebhookFilter, WebhookSecret, Webhooks } from './webhooks-port.js';

const MAX_WEBHOOKS = 100;

/** A webhook in the form of its hash. */
interface Stored {
  project: string;
  document: WebhookDocument;
  secrets: WebhookSecret[];
  failing_since: string | null;
}

export function webhooks(context: StoreContext): Webhooks {
  const { redis, prefix, commands } = context;
  const key = (id: string) => `${prefix}:webhook:${id}`;
  const indexOf = (project: string) => `${prefix}:project:${project}:webhooks`;

  async function read(id: string): Promise<Stored | null> {
    return parse(await redisCall(redis.hgetall(key(id))));
  }

  async function readOf(project: string, id: string): Promise<Stored | null> {
    const found = await read(id);
    return found?.project === project ? found : null;
  }

  /** Returns null when the project has no such webhook. */
  function change<F extends 'document' | 'secrets'>(
    project: string,
    id: string,
    field: F,
    make: (before: Stored) => Stored[F],
  ): Promise<Webhook | null> {
    return untilUnchanged(id, async () => {
      const texts = await redisCall(redis.hgetall(key(id)));
      const before = parse(texts);
      if (before?.project !== project) return null;
      const to = make(before);
      const call = { webhook_id: id, project, field, from: texts[field], to: JSON.stringify(to) };
      const [changed] = await commands.run('change_webhook', call);
      return changed === '1' ? shown({ ...before, [field]: to, failing_since: null }) : undefined;
    });
  }

  const getWebhook = async (project: string, id: string) => {
    const found = await readOf(project, id);
    return found && shown(found);
  };

  return {
    ...webhookDeliveries(context, async (project, id) => (await readOf(project, id)) !== null),

    async createWebhook(project, document, secret) {
      await commands.run('create_webhook', {
        webhook_id: document.id,
        project,
        document: JSON.stringify(document),
        secrets: JSON.stringify([secret]),
        limit: MAX_WEBHOOKS,
      });
      return shown({ project, document, secrets: [secret], failing_since: null });
    },

    getWebhook,

    listWebhooks(project: string, { url, ...page }: WebhookFilter = {}): Promise<Page<Webhook>> {
      const load = (ids: string[]) => Promise.all(ids.map((id) => getWebhook(project, id)));
      // A project has too few webhooks for a separate index.
      const matches = (webhook: Webhook) => url === undefined || webhook.url === url;
      return readPage(context, { indexes: [indexOf(project)], page, load, matches });
    },

    async deleteWebhook(project, id) {
      const [deleted] = await commands.run('delete_webhook', { webhook_id: id, project });
      return deleted === '1';
    },

    updateWebhook: (project, id, update) =>
      change(project, id, 'document', (before) => {
        const { secrets: _, failing_since: __, ...to } = update(shown(before));
        return to;
      }),

    rotateWebhookSecret: (project, id, { secret, until }) =>
      change(project, id, 'secrets', ({ secrets: [newest] }) =>
        newest === undefined ? [secret] : [secret, { ...newest, expires_at: until }],
      ),

    async webhooksOf(project) {
      const ids = await redisCall(redis.zrange(indexOf(project), '0', '-1'));
      const found = await Promise.all(ids.map((id) => getWebhook(project, id)));
      return found.filter((webhook) => webhook !== null);
    },

    async webhookTarget(id) {
      const found = await read(id);
      if (found === null) return null;
      const secrets = live(found.secrets).map(({ secret }) => secret);
      return { project: found.project, webhook: shown(found), secrets };
    },
  };
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
