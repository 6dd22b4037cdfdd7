import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadConfig } from '../../platform/config/config.js';
import { oidcSettings } from './settings.js';

const complete = {
  ZEROFLEET_PUBLIC_URL: 'https://train.example.com',
  ZEROFLEET_OIDC_ISSUER: 'https://login.example.com',
  ZEROFLEET_OIDC_CLIENT_ID: 'zerofleet',
  ZEROFLEET_OIDC_ROLES: '{"ml": {"project": "default", "scopes": ["jobs:read"]}}',
};
const settings = (env: Record<string, string>) => oidcSettings(loadConfig(env));

t.test('a provider has all that it needs, or there is none', async (t) => {
  t.equal(settings({}), null);
  t.match(settings(complete), {
    public_url: 'https://train.example.com/',
    client_secret: null,
    roles: [{ role: 'ml', project: 'default', scopes: ['jobs:read'] }],
    roles_claim: 'groups',
    session_ms: 28_800_000,
  });
  for (const name of ['ZEROFLEET_PUBLIC_URL', 'ZEROFLEET_OIDC_CLIENT_ID', 'ZEROFLEET_OIDC_ROLES'])
    t.throws(() => settings({ ...complete, [name]: '' }), {
      code: 'invalid_configuration',
      message: new RegExp(name),
    });
  t.throws(() => settings({ ...complete, ZEROFLEET_OIDC_SCOPES: 'email' }), { message: /openid/ });
});

t.test('the secret is in the environment or in a file', async (t) => {
  const file = join(t.testdir(), 'secret');
  writeFileSync(file, 'of a file\n');
  t.match(settings({ ...complete, ZEROFLEET_OIDC_CLIENT_SECRET: 'given' }), { client_secret: 'given' });
  const ofFile = { ...complete, ZEROFLEET_OIDC_CLIENT_SECRET_FILE: file };
  t.match(settings(ofFile), { client_secret: 'of a file' });
  t.throws(() => settings({ ...ofFile, ZEROFLEET_OIDC_CLIENT_SECRET: 'given' }), { message: /not both/ });
  t.throws(() => settings({ ...ofFile, ZEROFLEET_OIDC_CLIENT_SECRET_FILE: `${file}x` }), {
    message: /ENOENT/,
  });
});
