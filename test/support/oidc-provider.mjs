// An OpenID provider for tests, as a child process: node oidc-provider.mjs REDIRECT_URI.
// It sends its issuer, and accepts any login: those that begin with "ml" are in the group ml, with "admin" in the group
// admins.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const groupsOf = (login) => ['ml', 'admins'].filter((group) => login.startsWith(group.replace(/s$/, '')));
const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'zerofleet',
      client_secret: 'secret of the client',
      redirect_uris: [process.argv[2]],
      response_types: ['code'],
      grant_types: ['authorization_code'],
    },
  ],
  pkce: { required: () => true },
  scopes: ['openid', 'email', 'profile', 'groups'],
  claims: { openid: ['sub'], email: ['email'], profile: ['name'], groups: ['groups'] },
  // The groups are in the ID token, as with most providers.
  conformIdTokenClaims: false,
  cookies: { keys: ['a key of cookies'] },
  findAccount: (_, login) => ({
    accountId: login,
    claims: () => ({
      sub: login,
      name: `${login} by name`,
      email: `${login}@example.com`,
      groups: groupsOf(login),
    }),
  }),
});
server.on('request', provider.callback());
process.send({ issuer });
process.on('disconnect', () => process.exit());
