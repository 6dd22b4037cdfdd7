import t from 'tap';
import { testSettings } from '../testing/oidc.js';
import { userOf } from './rights.js';

const settings = testSettings();
const claims = (more: Record<string, unknown>) => ({ iss: 'https://login.example.com', sub: 'u1', ...more });

t.test('the first configured role of a user counts', async (t) => {
  t.same(userOf(claims({ groups: ['x', 'ml', 'admins'], name: 'Ada', email: 'ada@example.com' }), settings), {
    issuer: 'https://login.example.com',
    subject: 'u1',
    name: 'Ada',
    email: 'ada@example.com',
    project: 'default',
    scopes: ['admin'],
  });
  t.match(userOf(claims({ groups: 'ml' }), settings), { project: 'team-b', name: 'u1', email: null });
  t.match(userOf(claims({ groups: ['ml'], email: 'a@b.c', name: '' }), settings), { name: 'a@b.c' });
});

t.test('without a configured role there is no user', async (t) => {
  for (const groups of [undefined, null, [], ['other'], 'mlx', { ml: true }, [['ml']], 7])
    t.equal(userOf(claims({ groups }), settings), null, JSON.stringify(groups));
  t.equal(userOf(claims({ roles: ['ml'] }), settings), null, 'another claim');
});
