import type { UserInput } from '../../state/index.js';
import type { OidcSettings } from './settings.js';

/** Claims of an ID token. */
export type Claims = Readonly<Record<string, unknown>> & { iss: string; sub: string };

/** Returns the user with the rights of the first configured role; null when no role is configured. */
export function userOf(
  claims: Claims,
  { roles, roles_claim }: Pick<OidcSettings, 'roles' | 'roles_claim'>,
): UserInput | null {
  const has = new Set([claims[roles_claim] ?? []].flat());
  const found = roles.find(({ role }) => has.has(role));
  if (found === undefined) return null;
  const { iss: issuer, sub: subject } = claims;
  const email = textOf(claims.email);
  const name = textOf(claims.name) ?? email ?? subject;
  const { project, scopes } = found;
  return { issuer, subject, name, email, project, scopes };
}

const MOST_CHARACTERS = 200;

const textOf = (claim: unknown) =>
  typeof claim === 'string' && claim !== '' ? claim.slice(0, MOST_CHARACTERS) : null;
