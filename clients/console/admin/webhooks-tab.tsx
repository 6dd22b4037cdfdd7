import { useSignal } from '@preact/signals';
import type { Webhook } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useList } from '../app/list.js';
import { linkTo, route } from '../app/router.js';
import { Empty } from '../parts/empty.js';
import { dateTime } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { LoadOlder } from '../parts/records-table.js';
import { TableHead } from '../parts/table-head.js';
import { webhookSpecOf } from './fields.js';
import { FormDialog } from './form-dialog.js';
import { WebhookBadge, WebhookFields } from './webhook-fields.js';
import { WebhookView } from './webhook-view.js';

/** The list, or the webhook that the address names. */
export function WebhooksTab() {
  const id = route.value.query.get('webhook');
  return id === null ? <WebhookList /> : <WebhookView key={id} id={id} />;
}

function WebhookList() {
  const { list, more } = useList(() => client.webhooks.list({ limit: 100 }), []);
  const isOpen = useSignal(false);
  const close = () => {
    isOpen.value = false;
    void list.reload();
  };
  const create = async (form: FormData) => (await client.webhooks.create(webhookSpecOf(form))).secret;
  const webhooks = list.value.value;
  return (
    <>
      <div class="filters">
        <span class="spring" />
        <button type="button" class="primary" onClick={() => (isOpen.value = true)}>
          New webhook
        </button>
      </div>
      {list.fault.value && <Notice fault={list.fault.value} />}
      {webhooks?.items.length === 0 && (
        <Empty title="No webhook yet.">
          <p>A new webhook sends events of runs to one of your URLs, signed.</p>
        </Empty>
      )}
      {webhooks !== null && webhooks.items.length > 0 && (
        <section class="card scroll" aria-label="Webhooks">
          <table>
            <TableHead names={['URL', 'State', 'Events', 'Runs', 'Created']} />
            <tbody>
              {webhooks.items.map((webhook) => (
                <WebhookRow key={webhook.id} webhook={webhook} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      <LoadOlder name="ones" list={webhooks} more={more} />
      {isOpen.value && (
        <FormDialog title="New webhook" submit="Create" send={create} onClose={close}>
          <WebhookFields />
        </FormDialog>
      )}
    </>
  );
}

function WebhookRow({ webhook }: { webhook: Webhook }) {
  const { id, url, description, events, jobs, created_at } = webhook;
  return (
    <tr>
      <th scope="row" class="url">
        <a class="name" href={linkTo(['admin'], { tab: 'webhooks', webhook: id })}>
          {url}
        </a>
        {description && <div class="muted small">{description}</div>}
      </th>
      <td>
        <WebhookBadge webhook={webhook} />
      </td>
      <td class="wrap">{events.join(', ')}</td>
      <td>{jobs}</td>
      <td class="muted">{dateTime(created_at)}</td>
    </tr>
  );
}
