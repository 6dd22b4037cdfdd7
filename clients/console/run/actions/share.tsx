import { useSignal } from '@preact/signals';
import type { Share } from '../../../../contracts/types.js';
import { client } from '../../app/connection.js';
import { useLoaded } from '../../app/loaded.js';
import { ActionButton } from '../../parts/action.js';
import { Copy } from '../../parts/copy.js';
import { Dialog } from '../../parts/dialog.js';
import { Notice } from '../../parts/notice.js';
import { TableHead } from '../../parts/table-head.js';

const DAY_SECONDS = 86_400;
const DAYS = [1, 7, 30, 90];

/** The action that makes links to a run for people without a key. */
export function ShareRun({ id }: { id: string }) {
  const isOpen = useSignal(false);
  return (
    <>
      <button type="button" onClick={() => (isOpen.value = true)}>
        Share
      </button>
      {isOpen.value && <ShareDialog id={id} onClose={() => (isOpen.value = false)} />}
    </>
  );
}

function ShareDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const days = useSignal(7);
  const description = useSignal('');
  const url = useSignal<string | null>(null);
  const shares = useLoaded(() => client.shares.list(id), [id]);
  const create = async () => {
    const body = { expires_in_seconds: days.value * DAY_SECONDS, description: description.value };
    url.value = (await client.shares.create(id, body)).url;
    await shares.reload();
  };
  return (
    <Dialog title="Share this run" onClose={onClose}>
      <div class="form">
        <p class="muted small">
          A link shows this run alone, read only: also its document, log lines and list of checkpoints.
          Whoever has the link can open it.
        </p>
        <label>
          Ends after
          <select value={days.value} onChange={(event) => (days.value = Number(event.currentTarget.value))}>
            {DAYS.map((number) => (
              <option key={number} value={number}>
                {number === 1 ? '1 day' : `${number} days`}
              </option>
            ))}
          </select>
        </label>
        <label>
          Note, which its readers see
          <input
            value={description.value}
            maxLength={200}
            onInput={(event) => (description.value = event.currentTarget.value)}
          />
        </label>
        <ActionButton label="Create a link" kind="primary" act={create} />
        {url.value && <NewLink key={url.value} url={url.value} />}
        {shares.fault.value && <Notice fault={shares.fault.value} />}
        {shares.value.value && <Links shares={shares.value.value} reload={() => shares.reload()} />}
      </div>
    </Dialog>
  );
}

/** The address, which the server does not know any more. */
function NewLink({ url }: { url: string }) {
  return (
    <div class="notice">
      <label>
        The link, which is shown only now
        <input readOnly value={url} onFocus={(event) => event.currentTarget.select()} />
      </label>
      <Copy text={url} />
    </div>
  );
}

function Links({ shares, reload }: { shares: readonly Share[]; reload: () => Promise<void> }) {
  if (shares.length === 0) return <p class="muted">This run has no link.</p>;
  const revoke = async ({ id, job_id }: Share) => {
    await client.shares.revoke(job_id, id);
    await reload();
  };
  return (
    <section class="scroll" aria-label="Links of this run">
      <table>
        <TableHead names={['Note', 'Ends', 'Actions']} />
        <tbody>
          {shares.map((share) => (
            <tr key={share.id}>
              <td>{share.description || <span class="muted">none</span>}</td>
              <td>
                <time dateTime={share.expires_at} title={new Date(share.expires_at).toLocaleString()}>
                  {new Date(share.expires_at).toLocaleDateString()}
                </time>
              </td>
              <td>
                <ActionButton
                  label="Revoke"
                  kind="quiet"
                  confirm="Those who have it open are signed out. Revoke this link?"
                  act={() => revoke(share)}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
