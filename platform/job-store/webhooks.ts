import { type Page, type Webhook, ZerofleetError } from '../../contracts/index.js';
import { redisCall, type StoreContext } from './context.js';
import { readPage } from './listing.js';
import { webhookDeliveries } from './webhook-deliveries.js';
import type { WebhookFilter, WebhookSecret, Webhooks } from './webhooks-port.js';

const MAX_WEBHOOKS = 100;
/** Of a rotation, each time that another one came before. */
const ROTATE_TRIES = 10;

/** A webhook as it lies in its hash. */
interface Stored {
  project: string;
  document: Omit<Webhook, 'secrets'>;
  secrets: WebhookSecret[];
  /** As they were read. */
  secretsText: string;
}

export function webhooks(context: StoreContext): Webhooks {
  const { redis, prefix, commands } = context;
  const key = (id: string) => `${prefix}:webhook:${id}`;
  const indexOf = (project: string) => `${prefix}:project:${project}:webhooks`;

  async function read(id: string): Promise<Stored | null> {
    const { project, document, secrets } = await redisCall(redis.hgetall(key(id)));
    if (project === undefined || document === undefined || secrets === undefined) return null;
    return { project, document: JSON.parse(document), secrets: JSON.parse(secrets), secretsText: secrets };
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

    async createWebhook(project, document, secret) {
      await commands.run('create_webhook', {
        webhook_id: document.id,
        project,
        document: JSON.stringify(document),
        secrets: JSON.stringify([secret]),
        limit: MAX_WEBHOOKS,
      });
      return withSecrets(document, [secret]);
    },

    getWebhook,

    listWebhooks(project: string, { url, ...page }: WebhookFilter = {}): Promise<Page<Webhook>> {
      const load = (ids: string[]) => Promise.all(ids.map((id) => getWebhook(project, id)));
      // There are too few for an index of their own.
      const matches = (webhook: Webhook) => url === undefined || webhook.url === url;
      return readPage(context, { indexes: [indexOf(project)], page, load, matches });
    },

    async deleteWebhook(project, id) {
      const [deleted] = await commands.run('delete_webhook', { webhook_id: id, project });
      return deleted === '1';
    },

    async rotateWebhookSecret(project, id, { secret, until }) {
      for (let tries = 0; tries < ROTATE_TRIES; tries += 1) {
        const found = await readOf(project, id);
        if (found === null) return null;
        const [newest] = found.secrets;
        const to = newest === undefined ? [secret] : [secret, { ...newest, expires_at: until }];
        const [replaced] = await commands.run('change_webhook_secrets', {
          webhook_id: id,
          project,
          from: found.secretsText,
          to: JSON.stringify(to),
        });
        if (replaced === '1') return withSecrets(found.document, to);
      }
      throw new ZerofleetError(
        'job_store_unavailable',
        `the secret of ${id} changes all the time; try again`,
      );
    },

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

function live(secrets: readonly WebhookSecret[]): WebhookSecret[] {
  const now = new Date().toISOString();
  return secrets.filter(({ expires_at }) => expires_at === null || expires_at > now);
}

function shown({ document, secrets }: Stored): Webhook {
  return withSecrets(document, secrets);
}

/** Since when and until when the live ones sign, and nothing of what they are. */
function withSecrets(document: Omit<Webhook, 'secrets'>, secrets: readonly WebhookSecret[]): Webhook {
  const times = live(secrets).map(({ created_at, expires_at }) => ({ created_at, expires_at }));
  return { ...document, secrets: times };
}
