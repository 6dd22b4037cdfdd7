import type { Delivery, Webhook } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useList } from '../app/list.js';
import { linkTo } from '../app/router.js';
import { ActionButton } from '../parts/action.js';
import { clock, count, dateTime } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { LoadOlder } from '../parts/records-table.js';
import { TableHead } from '../parts/table-head.js';
import { attemptText, deliveryState, runOf } from './webhooks.js';

const REFRESH_MS = 5_000;

/** Messages of a webhook, the newest first, with their attempts. */
export function Deliveries({ webhook: { id, enabled } }: { webhook: Webhook }) {
  const { list, more } = useList(() => client.webhooks.deliveries(id), [id], undefined, {
    every_ms: REFRESH_MS,
  });
  const deliveries = list.value.value;
  const ping = async () => {
    await client.webhooks.ping(id);
    await list.reload();
  };
  return (
    <section class="card" aria-label="Messages">
      <div class="title">
        <h2>Messages</h2>
        <span class="spring" />
        <ActionButton label="Send a ping" act={ping} disabled={!enabled} />
      </div>
      {list.fault.value && <Notice fault={list.fault.value} />}
      {deliveries?.items.length === 0 && (
        <p class="muted">Nothing was sent yet. A ping shows whether the receiver accepts messages.</p>
      )}
      {deliveries !== null && deliveries.items.length > 0 && (
        <div class="scroll">
          <table>
            <TableHead names={['Message', 'State', 'Attempts', 'Created', 'Actions']} />
            <tbody>
              {deliveries.items.map((delivery) => (
                <DeliveryRow key={delivery.id} delivery={delivery} reload={() => list.reload()} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <LoadOlder name="messages" list={deliveries} more={more} />
    </section>
  );
}

function DeliveryRow({ delivery, reload }: { delivery: Delivery; reload: () => Promise<void> }) {
  const { id, webhook_id, message, message_id, state, created_at, next_attempt_at, attempts } = delivery;
  const run = runOf(delivery);
  const { text, kind } = deliveryState(delivery);
  const redeliver = async () => {
    await client.webhooks.redeliver(webhook_id, id);
    await reload();
  };
  const last = attempts.at(-1);
  return (
    <tr>
      <th scope="row">
        {message.type}{' '}
        {run !== null && (
          <a class="link" href={linkTo(['runs', run])}>
            of a run
          </a>
        )}
        <div class="mono muted small">{message_id}</div>
      </th>
      <td>
        <span class={`badge ${kind}`}>{text}</span>
      </td>
      <td>
        {last === undefined ? (
          <span class="muted">none yet</span>
        ) : (
          <details>
            <summary>
              {count(attempts.length)}: {attemptText(last)}
            </summary>
            <ol class="attempts small">
              {attempts.map((attempt) => (
                <li key={attempt.at}>
                  {dateTime(attempt.at)} {attemptText(attempt)}{' '}
                  <span class="muted">after {count(attempt.duration_ms)} ms</span>
                </li>
              ))}
            </ol>
          </details>
        )}
        {next_attempt_at !== null && last !== undefined && (
          <div class="muted small">next at {clock(next_attempt_at)}</div>
        )}
      </td>
      <td class="muted">{dateTime(created_at)}</td>
      <td class="actions">
        {state !== 'pending' && <ActionButton label="Redeliver" kind="quiet" act={redeliver} />}
      </td>
    </tr>
  );
}
