import { useSignal } from '@preact/signals';
import type { Webhook } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { type Loaded, useLoaded } from '../app/loaded.js';
import { go, linkTo } from '../app/router.js';
import { ActionButton } from '../parts/action.js';
import { dateTime } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { Deliveries } from './deliveries.js';
import { overlapOf, webhookSpecOf } from './fields.js';
import { FormDialog, OverlapField } from './form-dialog.js';
import { WebhookBadge, WebhookFields } from './webhook-fields.js';

const REFRESH_MS = 10_000;
const LIST = linkTo(['admin'], { tab: 'webhooks' });

/** A webhook with its actions and its messages. */
export function WebhookView({ id }: { id: string }) {
  const loaded = useLoaded(() => client.webhooks.get(id), [id], {
    every_ms: REFRESH_MS,
  });
  const webhook = loaded.value.value;
  return (
    <>
      <p>
        <a href={LIST}>All webhooks</a>
      </p>
      {loaded.fault.value && <Notice fault={loaded.fault.value} />}
      {webhook && (
        <>
          <Head webhook={webhook} loaded={loaded} />
          <Deliveries webhook={webhook} />
        </>
      )}
    </>
  );
}

function Head({ webhook, loaded }: { webhook: Webhook; loaded: Loaded<Webhook> }) {
  const { id, url, description, events, jobs, enabled, secrets } = webhook;
  const open = useSignal<'edit' | 'rotate' | null>(null);
  const close = () => {
    open.value = null;
    void loaded.reload();
  };
  const toggle = async () => loaded.set(await client.webhooks.update(id, { enabled: !enabled }));
  const remove = async () => {
    await client.webhooks.delete(id);
    go(LIST);
  };
  const edit = async (form: FormData) => {
    await client.webhooks.update(id, webhookSpecOf(form));
    return null;
  };
  const rotate = async (form: FormData) => (await client.webhooks.rotateSecret(id, overlapOf(form))).secret;
  const previous = secrets[1]?.expires_at ?? null;
  return (
    <section class="card head" aria-label="Webhook">
      <div class="title">
        <h2 class="url">{url}</h2>
        <WebhookBadge webhook={webhook} />
        <span class="spring" />
        <button type="button" onClick={() => (open.value = 'edit')}>
          Edit
        </button>
        <ActionButton label={enabled ? 'Disable' : 'Enable'} act={toggle} />
        <button type="button" onClick={() => (open.value = 'rotate')}>
          Rotate secret
        </button>
        <ActionButton
          label="Delete"
          kind="danger"
          confirm="Its messages are deleted, too. Delete this webhook?"
          act={remove}
        />
      </div>
      <p class="mono muted small">{id}</p>
      {description && <p>{description}</p>}
      <p class="muted">
        Events {events.join(', ')} of {jobs === 'all' ? 'all runs' : 'runs that name it'}.
        {previous !== null && ` The previous secret signs, too, until ${dateTime(previous)}.`}
      </p>
      {open.value === 'edit' && (
        <FormDialog title="Change the webhook" submit="Save" send={edit} onClose={close}>
          <WebhookFields webhook={webhook} />
        </FormDialog>
      )}
      {open.value === 'rotate' && (
        <FormDialog title="New secret of the webhook" submit="Rotate" send={rotate} onClose={close}>
          <p>Messages are signed with the new secret, and with the previous one while it works.</p>
          <OverlapField />
        </FormDialog>
      )}
    </section>
  );
}
