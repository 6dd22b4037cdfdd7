import type { SignedInUser } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { linkTo } from '../app/router.js';
import { me } from '../app/session.js';
import { Empty } from '../parts/empty.js';
import { count, dateTime } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { TableHead } from '../parts/table-head.js';
import { ProjectChoice, projectShown, useProjects } from './project-choice.js';
import { SignOut } from './sign-out.js';

const REFRESH_MS = 10_000;

/** Users whom the OpenID provider has signed in. */
export function UsersTab() {
  const project = projectShown();
  const projects = useProjects();
  const list = useLoaded(() => client.sessions.users(project), [project], { every_ms: REFRESH_MS });
  const users = list.value.value;
  return (
    <>
      <div class="filters">
        <ProjectChoice projects={projects.value.value ?? []} />
      </div>
      {list.fault.value && <Notice fault={list.fault.value} />}
      {users?.length === 0 && (
        <Empty title="No user is signed in.">
          <p>
            Users sign in by the OpenID provider of your team, if the server has one. Keys and their sessions
            are under <a href={linkTo(['admin'])}>keys</a>.
          </p>
        </Empty>
      )}
      {users !== null && users.length > 0 && (
        <section class="card scroll" aria-label="Users">
          <table>
            <TableHead names={['Name', 'Scopes', 'Signed in', 'Until', 'Browsers', 'Actions']} />
            <tbody>
              {users.map((user) => (
                <UserRow key={user.user.id} user={user} reload={() => list.reload()} />
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

interface UserRowProps {
  user: SignedInUser;
  reload: () => Promise<void>;
}

function UserRow({ user: { user, scopes, num_sessions }, reload }: UserRowProps) {
  const { id, name, email, signed_in_at, expires_at } = user;
  const isOwn = me()?.user?.id === id;
  return (
    <tr>
      <th scope="row">
        <span class="name">{name}</span> {isOwn && <span class="badge good">you</span>}
        <div class="muted small">{email}</div>
        <div class="mono muted small">{id}</div>
      </th>
      <td class="wrap">{scopes.join(', ')}</td>
      <td>{dateTime(signed_in_at)}</td>
      <td>{dateTime(expires_at)}</td>
      <td>{count(num_sessions)}</td>
      <td class="actions">
        <a href={linkTo(['admin'], { tab: 'audit', principal_id: id })}>Audit</a>
        <SignOut id={id} name={name} isOwn={isOwn} onDone={reload} />
      </td>
    </tr>
  );
}
