import { useSignal } from '@preact/signals';
import type { ApiKey } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useList } from '../app/list.js';
import { linkTo } from '../app/router.js';
import { may } from '../app/session.js';
import { ActionButton } from '../parts/action.js';
import { Empty } from '../parts/empty.js';
import { ago, count, dateTime } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { LoadOlder } from '../parts/records-table.js';
import { TableHead } from '../parts/table-head.js';
import { ChangeKey, isOwn, NewKey, RotateKey } from './key-dialogs.js';
import { ProjectChoice, projectShown, useProjects } from './project-choice.js';
import { SignOut } from './sign-out.js';

const COLUMNS = ['Name', 'Project', 'Scopes', 'Last used', 'Expires', 'Requests per minute', 'Actions'];

export function KeysTab() {
  const project = projectShown();
  const { list, more } = useList(() => client.apiKeys.list({ limit: 100, project }), [project]);
  const projects = useProjects();
  const open = useSignal<'new' | { action: 'change' | 'rotate'; key: ApiKey } | null>(null);
  /** The list is read after a secret was shown: a session that its rotation has ended would hide it. */
  const close = () => {
    open.value = null;
    void list.reload();
    void projects.reload();
  };
  const keys = list.value.value;
  const opened = open.value === 'new' ? null : open.value;
  return (
    <>
      <div class="filters">
        <ProjectChoice projects={projects.value.value ?? []} />
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
                  onOpen={(action) => (open.value = { action, key })}
                  reload={() => list.reload()}
                />
              ))}
            </tbody>
          </table>
        </section>
      )}
      <LoadOlder name="ones" list={keys} more={more} />
      {open.value === 'new' && (
        <NewKey project={project} projects={projects.value.value ?? []} onClose={close} />
      )}
      {opened?.action === 'change' && <ChangeKey apiKey={opened.key} onClose={close} />}
      {opened?.action === 'rotate' && <RotateKey apiKey={opened.key} onClose={close} />}
    </>
  );
}

interface KeyRowProps {
  apiKey: ApiKey;
  onOpen: (action: 'change' | 'rotate') => void;
  /** Reads the list again. */
  reload: () => Promise<void>;
}

function KeyRow({ apiKey, onOpen, reload }: KeyRowProps) {
  const { id, name, project, scopes, last_used_at, expires_at, requests_per_minute } = apiKey;
  const { builtin, previous_secret_until } = apiKey;
  const revoke = async () => {
    await client.apiKeys.revoke(id);
    await reload();
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
          <>
            <button type="button" class="quiet" onClick={() => onOpen('change')}>
              Change
            </button>
            <button type="button" class="quiet" onClick={() => onOpen('rotate')}>
              Rotate
            </button>
          </>
        )}
        <SignOut id={id} name={name} isOwn={isOwn(apiKey)} onDone={reload} />
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
