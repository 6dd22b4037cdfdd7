import { readFileSync } from 'node:fs';
import { ZerofleetError } from '../../contracts/index.js';
import type { Config } from '../../platform/config/config.js';
import type { OidcRole } from '../../platform/config/oidc-roles.js';

/** An OpenID provider, complete. */
export interface OidcSettings {
  issuer: string;
  name: string;
  client_id: string;
  /** Null for a public client. */
  client_secret: string | null;
  scopes: string;
  roles_claim: string;
  roles: readonly OidcRole[];
  session_ms: number;
  /** URL of the console, with a slash at the end. */
  public_url: string;
}

type Part = Extract<keyof Config, `oidc_${string}` | 'public_url'>;

/** Returns the provider of the configuration, or null without one. @throws ZerofleetError `invalid_configuration` */
export function oidcSettings(config: Pick<Config, Part>): OidcSettings | null {
  const { oidc_issuer: issuer, oidc_client_id: clientId, oidc_roles: roles, public_url } = config;
  if (issuer === null) return null;
  if (clientId === null) throw missing('oidc_client_id');
  if (roles === null) throw missing('oidc_roles');
  if (public_url === null) throw missing('public_url');
  if (!config.oidc_scopes.split(' ').includes('openid'))
    throw invalid('ZEROFLEET_OIDC_SCOPES must contain openid');
  return {
    issuer,
    name: config.oidc_name,
    client_id: clientId,
    client_secret: secretOf(config),
    scopes: config.oidc_scopes,
    roles_claim: config.oidc_roles_claim,
    roles,
    session_ms: config.oidc_session_hours * 3_600_000,
    public_url: public_url.replace(/\/*$/, '/'),
  };
}

function secretOf({
  oidc_client_secret: secret,
  oidc_client_secret_file: file,
}: Pick<Config, Part>): string | null {
  if (file === null) return secret;
  if (secret !== null)
    throw invalid('set ZEROFLEET_OIDC_CLIENT_SECRET or ZEROFLEET_OIDC_CLIENT_SECRET_FILE, not both');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw invalid(`ZEROFLEET_OIDC_CLIENT_SECRET_FILE: ${(error as Error).message}`);
  }
}

const missing = (part: Part) =>
  invalid(`ZEROFLEET_OIDC_ISSUER needs ZEROFLEET_${part.toUpperCase()} as well`);

const invalid = (message: string) => new ZerofleetError('invalid_configuration', message);
