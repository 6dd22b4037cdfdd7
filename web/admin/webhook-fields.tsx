import type { Webhook } from '../../contracts/types.js';
import { stateOf } from './webhooks.js';

/** Fields of a new webhook, or of one that is changed. */
export function WebhookFields({ webhook }: { webhook?: Webhook }) {
  return (
    <>
      <label>
        URL
        <input name="url" type="url" required placeholder="https://…" defaultValue={webhook?.url ?? ''} />
      </label>
      <label>
        Description
        <input name="description" maxLength={200} defaultValue={webhook?.description ?? ''} />
      </label>
      <label>
        Events, such as job.state or checkpoint.*
        <input name="events" required defaultValue={webhook?.events.join(' ') ?? '*'} />
      </label>
      <label>
        Runs
        <select name="jobs">
          <option value="all">all</option>
          <option value="named" selected={webhook?.jobs === 'named'}>
            those whose document names it in notify.webhooks
          </option>
        </select>
      </label>
    </>
  );
}

export function WebhookBadge({ webhook }: { webhook: Webhook }) {
  const { text, kind } = stateOf(webhook);
  return <span class={`badge ${kind}`}>{text}</span>;
}
