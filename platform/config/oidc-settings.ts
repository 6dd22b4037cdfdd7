/** Variables of the sign-in by an OpenID provider. */
import { integer, nonEmpty, url } from './config-values.js';
import { oidcRoles } from './oidc-roles.js';
import type { Setting } from './setting.js';

export const OIDC_SETTINGS = [
  {
    key: 'public_url',
    fallback: null,
    unset: 'no sign-in by OpenID Connect',
    help: 'URL at which browsers reach the API, e.g. `https://train.example.com`. The OpenID provider sends users back there ([OpenID Connect](access.md#openid-connect)).',
    parse: url(['http:', 'https:']),
  },
  {
    key: 'oidc_issuer',
    fallback: null,
    unset: 'no provider',
    help: 'URL of the OpenID provider with which users sign in to the console.',
    parse: url(['http:', 'https:']),
  },
  {
    key: 'oidc_name',
    fallback: 'single sign-on',
    help: 'Name of the provider on the sign-in page.',
    parse: nonEmpty,
  },
  {
    key: 'oidc_client_id',
    fallback: null,
    unset: 'required for a provider',
    help: 'Id of this installation at the provider.',
    parse: nonEmpty,
  },
  {
    key: 'oidc_client_secret',
    fallback: null,
    unset: 'read from the file, or the client is public',
    help: 'Secret of this installation at the provider.',
    parse: nonEmpty,
  },
  {
    key: 'oidc_client_secret_file',
    fallback: null,
    unset: 'no file',
    help: 'File with that secret, read at the start.',
    parse: nonEmpty,
  },
  {
    key: 'oidc_scopes',
    fallback: 'openid profile email',
    help: 'Scopes that are requested from the provider.',
    parse: nonEmpty,
  },
  {
    key: 'oidc_roles_claim',
    fallback: 'groups',
    help: "Claim of the ID token with the user's roles: a string or a list of strings.",
    parse: nonEmpty,
  },
  {
    key: 'oidc_roles',
    fallback: null,
    unset: 'required for a provider',
    help: 'JSON: project and scopes of each role. The first role in this order that a user has counts.',
    parse: oidcRoles,
  },
  {
    key: 'oidc_session_hours',
    fallback: '8',
    help: 'Hours after which a user must sign in again.',
    parse: integer(1, 168),
  },
] as const satisfies readonly Setting[];
