import { client } from '../app/connection.js';
import { type Loaded, useLoaded } from '../app/loaded.js';
import { go, linkTo, route } from '../app/router.js';
import { may, me } from '../app/session.js';

const own = () => me()?.project?.name ?? '';

/** The project that the address names; by default that of the session. */
export const projectShown = () => route.value.query.get('project') ?? own();

/** Names of all projects for operators, none for others. */
export const useProjects = (): Loaded<string[]> =>
  useLoaded(async () => (may('operator') ? (await client.projects.list()).map(({ name }) => name) : []), []);

/** The choice of a project, for operators. */
export function ProjectChoice({ projects }: { projects: readonly string[] }) {
  if (!may('operator')) return null;
  const shown = projectShown();
  const choose = (project: string) => {
    const tab = route.value.query.get('tab') ?? '';
    go(linkTo(['admin'], { tab, project: project === own() ? '' : project }), { replace: true });
  };
  return (
    <label>
      Project
      <select value={shown} onChange={({ currentTarget: { value } }) => choose(value)}>
        {[...new Set([own(), shown, ...projects])].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
