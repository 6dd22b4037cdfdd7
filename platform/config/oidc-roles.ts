/** Parser of `ZEROFLEET_OIDC_ROLES`: what the roles of an OpenID provider may do. */
import { PROJECT_NAME, SCOPES, type Scope } from '../../contracts/index.js';

export interface OidcRole {
  role: string;
  project: string;
  scopes: readonly Scope[];
}

/**
 * Parses `{"role": {"project": "name", "scopes": ["jobs:read"]}}`; the order is kept.
 * @throws Error that names the wrong part
 */
export function oidcRoles(text: string): readonly OidcRole[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error('is not JSON');
  }
  if (!isObject(parsed) || Object.keys(parsed).length === 0)
    throw new Error('must be {"role": {"project": "name", "scopes": ["jobs:read"]}}');
  return Object.entries(parsed).map(([role, rights]) => roleOf(role, rights));
}

function roleOf(role: string, rights: unknown): OidcRole {
  if (!isObject(rights)) throw new Error(`${role} must have a project and scopes`);
  const { project, scopes, ...others } = rights;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new Error(`${role} has the unknown field ${unknown}`);
  if (typeof project !== 'string' || !PROJECT_NAME.test(project))
    throw new Error(`the project of ${role} is no name of a project`);
  if (!Array.isArray(scopes) || scopes.length === 0 || !scopes.every(isScope))
    throw new Error(`the scopes of ${role} must be some of ${SCOPES.join(', ')}`);
  return { role, project, scopes };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isScope = (value: unknown): value is Scope => (SCOPES as readonly unknown[]).includes(value);
