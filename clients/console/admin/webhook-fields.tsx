import type { Webhook } from '../../../contracts/types.js';
import { Labelled } from '../parts/labelled.js';
import { TextInput } from './form-dialog.js';
import { stateOf } from './webhooks.js';

/** Fields of a new webhook, or of one that is changed. */
export function WebhookFields({ webhook }: { webhook?: Webhook }) {
  return (
    <>
      <TextInput
        name="url"
        label="URL"
        type="url"
        required
        placeholder="https://…"
        defaultValue={webhook?.url}
      />
      <TextInput name="description" label="Description" maxLength={200} defaultValue={webhook?.description} />
      <TextInput
        name="events"
        label="Events, such as job.state or checkpoint.*"
        required
        defaultValue={webhook?.events.join(' ') ?? '*'}
      />
      <Labelled label="Runs" path={['jobs']}>
        {(attributes) => (
          <select {...attributes} name="jobs">
            <option value="all">all</option>
            <option value="named" selected={webhook?.jobs === 'named'}>
              those whose document names it in notify.webhooks
            </option>
          </select>
        )}
      </Labelled>
    </>
  );
}

export function WebhookBadge({ webhook }: { webhook: Webhook }) {
  const { text, kind } = stateOf(webhook);
  return <span class={`badge ${kind}`}>{text}</span>;
}
