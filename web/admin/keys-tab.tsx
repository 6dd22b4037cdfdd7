import { useSignal } from '@preact/signals';
import { SCOPES } from '../../contracts/index.js';
import type { ApiKey } from '../../contracts/types.js';
import { client } from '../app/connection.js';
import { useList } from '../app/list.js';
import { useLoaded } from '../app/loaded.js';
import { go, linkTo, place } from '../app/router.js';
import { may, session } from '../app/session.js';
import { ActionButton } from '../parts/action.js';
import { Empty } from '../parts/empty.js';
import { ago, count, dateTime } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { TableHead } from '../parts/table-head.js';
import { keyRequestOf, overlapOf } from './fields.js';
import { FormDialog, OverlapField } from './form-dialog.js';

const COLUMNS = ['Name', 'Project', 'Scopes', 'Last used', 'Expires', 'Requests per minute', 'Actions'];

/** Names of all projects for operators, none for others. */
const readProjects = async () =>
  may('operator') ? (await client.projects.list()).map(({ name }) => name) : [];

const me = () => (session.value.state === 'in' ? session.value.me : null);

export function KeysTab() {
  const own = me()?.project?.name ?? '';
  const project = place.value.query.get('project') ?? own;
  const { list, more } = useList(() => client.apiKeys.list({ limit: 100, project }), [project]);
  const projects = useLoaded(readProjects, []);
  const open = useSignal<'new' | ApiKey | null>(null);
  /** The list is read after a secret was shown: a session that its rotation has ended would hide it. */
  const close = () => {
    open.value = null;
    void list.reload();
    void projects.reload();
  };
  const keys = list.value.value;
  return (
    <>
      <div class="filters">
        {may('operator') && (
          <label>
            Project
            <select
              value={project}
              onChange={({ currentTarget: { value } }) =>
                go(linkTo(['admin'], { project: value === own ? '' : value }), { replace: true })
              }
            >
              {[...new Set([own, project, ...(projects.value.value ?? [])])].map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        <span class="spring" />
        <button type="button" class="primary" onClick={() => (open.value = 'new')}>
          New key
        </button>
      </div>
      {list.fault.value && <Notice fault={list.fault.value} />}
      {projects.fault.value && <Notice fault={projects.fault.value} />}
      {keys?.items.length === 0 && (
        <Empty title="This project has no key.">
          <p>Its first key creates the project.</p>
        </Empty>
      )}
      {keys !== null && keys.items.length > 0 && (
        <section class="card scroll" aria-label="Keys">
          <table class="api-keys">
            <TableHead names={COLUMNS} />
            <tbody>
              {keys.items.map((key) => (
                <KeyRow
                  key={key.id}
                  apiKey={key}
                  onRotate={() => (open.value = key)}
                  onRevoked={() => list.reload()}
                />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {keys?.hasMore && (
        <button type="button" onClick={() => void more()}>
          Load older ones
        </button>
      )}
      {open.value === 'new' && (
        <NewKey project={project} projects={projects.value.value ?? []} onClose={close} />
      )}
      {open.value !== null && open.value !== 'new' && <RotateKey apiKey={open.value} onClose={close} />}
    </>
  );
}

interface KeyRowProps {
  apiKey: ApiKey;
  onRotate: () => void;
  onRevoked: () => Promise<void>;
}

function KeyRow({ apiKey, onRotate, onRevoked }: KeyRowProps) {
  const { id, name, project, scopes, last_used_at, expires_at, requests_per_minute } = apiKey;
  const { builtin, previous_secret_until } = apiKey;
  const revoke = async () => {
    await client.apiKeys.revoke(id);
    await onRevoked();
  };
  return (
    <tr>
      <th scope="row">
        <span class="name">{name}</span> <KeyBadges apiKey={apiKey} />
        <div class="mono muted small">{id}</div>
      </th>
      <td>{project}</td>
      <td class="wrap">{scopes.join(', ')}</td>
      <td>{last_used_at === null ? 'never' : ago(last_used_at)}</td>
      <td>
        {expires_at === null ? 'never' : dateTime(expires_at)}
        {isAhead(previous_secret_until) && (
          <div class="muted small">previous secret: {dateTime(previous_secret_until)}</div>
        )}
      </td>
      <td>{requests_per_minute === null ? 'default' : count(requests_per_minute)}</td>
      <td class="actions">
        <a href={linkTo(['admin'], { tab: 'audit', principal_id: id })}>Audit</a>
        {!builtin && (may('operator') || !scopes.includes('operator')) && (
          <button type="button" class="quiet" onClick={onRotate}>
            Rotate
          </button>
        )}
        <ActionButton
          label="Revoke"
          kind="danger"
          confirm={`Revoke ${name}? ${consequenceOf(apiKey)}`}
          act={revoke}
        />
      </td>
    </tr>
  );
}

const isOwn = ({ id }: ApiKey) => me()?.api_key?.id === id;

const isAhead = (time: string | null): time is string => time !== null && Date.parse(time) > Date.now();

function consequenceOf(key: ApiKey): string {
  if (key.builtin) return 'The next start of the server creates it again.';
  return isOwn(key) ? 'Your session ends.' : 'Its requests are refused from now on.';
}

function KeyBadges({ apiKey }: { apiKey: ApiKey }) {
  const { builtin, expires_at } = apiKey;
  return (
    <>
      {isOwn(apiKey) && <span class="badge good">yours</span>}{' '}
      {builtin && (
        <span class="badge" title="It is set by the server's configuration, and rotated there.">
          builtin
        </span>
      )}{' '}
      {expires_at !== null && !isAhead(expires_at) && <span class="badge bad">expired</span>}
    </>
  );
}

interface NewKeyProps {
  project: string;
  /** Names that are offered; any other one is a new project. */
  projects: readonly string[];
  onClose: () => void;
}

function NewKey({ project, projects, onClose }: NewKeyProps) {
  const create = async (form: FormData) => (await client.apiKeys.create(keyRequestOf(form))).secret;
  return (
    <FormDialog title="New key" submit="Create" send={create} onClose={onClose}>
      <label>
        Name
        <input name="name" required autocomplete="off" />
      </label>
      <fieldset>
        <legend>Scopes</legend>
        {SCOPES.filter(may).map((scope) => (
          <label key={scope} class="check">
            <input type="checkbox" name="scopes" value={scope} />
            {scope}
          </label>
        ))}
      </fieldset>
      {may('operator') && (
        <label>
          Project
          <input name="project" defaultValue={project} list="projects" required autocomplete="off" />
          <datalist id="projects">
            {projects.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </label>
      )}
      <label>
        Expires (never, if empty)
        <input name="expires_at" type="datetime-local" />
      </label>
      <label>
        Requests per minute (the server's limit, if empty)
        <input name="requests_per_minute" type="number" min={1} />
      </label>
    </FormDialog>
  );
}

function RotateKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const rotate = async (form: FormData) => (await client.apiKeys.rotate(apiKey.id, overlapOf(form))).secret;
  return (
    <FormDialog title={`New secret of ${apiKey.name}`} submit="Rotate" send={rotate} onClose={onClose}>
      <p>The key gets a new secret and keeps its scopes.</p>
      <OverlapField />
      {isOwn(apiKey) && <p class="muted small">Your session ends if the previous secret works no longer.</p>}
    </FormDialog>
  );
}
