/** Users who are signed in, and the end of the sessions of others. */
import t from 'tap';
import type { AuditEntry, Page, Problem, SignedInUser } from '../../../contracts/index.js';
import type { UserInput } from '../../../state/index.js';
import { startTestStack } from '../../testing/stack.js';

const HOUR_MS = 3_600_000;
const insecure = { secure: false };
const userOf = (subject: string, more: Partial<UserInput> = {}): UserInput => ({
  issuer: 'https://login.example.com',
  subject,
  name: `name of ${subject}`,
  email: null,
  project: 'default',
  scopes: ['jobs:read'],
  ...more,
});

const stack = await startTestStack();
t.teardown(() => stack.close());
const { store, request } = stack;
const list = async (query = '', headers = {}) => {
  const reply = await request({ url: `/v1/users${query}`, headers });
  return reply.statusCode === 200 ? reply.json<{ data: SignedInUser[] }>().data : reply.json<Problem>().code;
};
const end = (id: string, headers = {}) =>
  request({ method: 'DELETE', url: `/v1/principals/${id}/sessions`, headers });
const isOpen = async (token: string) => (await store.findSession(token)) !== null;

t.test('users are listed with their rights and sessions, in their project', async (t) => {
  t.same(await list(), []);
  const ada = await store.putUser(userOf('ada'), HOUR_MS);
  const bob = await store.putUser(userOf('bob', { email: 'bob@example.com', scopes: ['admin'] }), HOUR_MS);
  for (const token of ['a1', 'a2']) await store.createSession(token, { principal_id: ada.id }, insecure);
  const before = await list();
  t.strictSame(
    new Set(before as SignedInUser[]),
    new Set([
      { user: ada.user, scopes: ['jobs:read'], num_sessions: 2 },
      { user: bob.user, scopes: ['admin'], num_sessions: 0 },
    ]),
  );
  const moved = await store.putUser(userOf('ada', { project: 'team-b' }), HOUR_MS);
  t.match(await list(), [{ user: { id: bob.id, email: 'bob@example.com' } }]);
  t.strictSame(await list('?project=team-b'), [{ user: moved.user, scopes: ['jobs:read'], num_sessions: 2 }]);
  const others = await stack.headersIn('team-b');
  t.match(await list('', others), [{ user: { id: ada.id } }]);
  t.equal(await list('?project=default', others), 'insufficient_scope');
  await store.putUser(userOf('bob'), 1);
  while (((await list()) as SignedInUser[]).length > 0);
});

t.test('an admin ends the sessions of a key, a user or a share', async (t) => {
  const job = await stack.createJob();
  const share = { job_id: job.id, description: '', life_ms: HOUR_MS };
  const ids = [
    (await store.putApiKey('zf_theirs', { name: 'theirs', scopes: ['jobs:read'] })).id,
    (await store.putUser(userOf('eve'), HOUR_MS)).id,
    (await store.createShare(`zf_share_${'e'.repeat(43)}`, share)).id,
  ];
  const stranger = await stack.headersIn('team-c');
  for (const id of ids) {
    await store.createSession(id, { principal_id: id }, insecure);
    await store.putSignInCode(`code of ${id}`, id);
    for (const [headers, status, code] of [
      [await stack.headersOf('jobs:write'), 403, 'insufficient_scope'],
      [stranger, 404, 'principal_not_found'],
    ] as const) {
      const refused = await end(id, headers);
      t.match([refused.statusCode, refused.json<Problem>().code], [status, code]);
      t.ok(await isOpen(id));
    }
    t.equal((await end(id)).statusCode, 204);
    t.notOk(await isOpen(id));
    t.equal(await store.createSession('late', { code: `code of ${id}` }, insecure), null);
    const log = (await request({ url: `/v1/audit-log?resource=${id}` })).json<Page<AuditEntry>>().data;
    t.match(log, [
      { operation: 'endSessionsOf', outcome: 'succeeded', status: 204 },
      { operation: 'endSessionsOf', outcome: 'refused', code: 'insufficient_scope' },
    ]);
  }
  const [key = ''] = ids;
  t.not(await store.createSession('again', { principal_id: key }, insecure), null, 'the key stays valid');
  await store.revokeApiKey(key);
  for (const id of [key, `usr_${'0'.repeat(26)}`])
    t.equal((await end(id)).json<Problem>().code, 'principal_not_found');
});

t.test('operators reach the principals of all projects', async (t) => {
  const { id } = await store.putUser(userOf('far', { project: 'team-d' }), HOUR_MS);
  await store.createSession('far', { principal_id: id }, insecure);
  t.equal((await end(id)).statusCode, 204);
  t.notOk(await isOpen('far'));
});
