/** A key and a request, without a server. authenticate.test.ts tests all operations. */
import type { FastifyRequest } from 'fastify';
import t from 'tap';
import type { ApiKey, Scope } from '../../contracts/index.js';
import { authenticate, requireScopes } from './authenticate.js';

const MINUTE_MS = 60_000;
const ago = (ms: number) => new Date(Date.now() - ms).toISOString();
const key = (fields: Partial<ApiKey> = {}) =>
  ({ id: 'key', scopes: [], expires_at: null, last_used_at: ago(0), ...fields }) as unknown as ApiKey;

/** Result of a request with this header if the store returns `found` for any secret. */
async function ask(authorization: string | undefined, found: ApiKey | null = key()) {
  const lookedFor: string[] = [];
  const touched: string[] = [];
  const warnings: unknown[] = [];
  let touch: Promise<void> = Promise.resolve();
  const keys = {
    findPrincipal: async (secret: string) => {
      lookedFor.push(secret);
      return found && { ...found, api_key: found, share: null, user: null };
    },
    touchApiKey: (id: string) => {
      touched.push(id);
      return touch;
    },
    findSession: async () => null,
  };
  const log = { warn: (error: unknown) => warnings.push(error) };
  const request = {
    headers: { authorization },
    log,
    routeOptions: { config: {} },
  } as unknown as FastifyRequest;
  const failTouch = () => {
    touch = Promise.reject(new Error('away'));
  };
  const run = () => authenticate(keys, request);
  return { looked_for: lookedFor, touched, warnings, failTouch, run };
}

t.test('the key after "Bearer" is looked up, with any case and any spaces', async (t) => {
  for (const header of ['Bearer secret', 'bearer secret', 'BEARER   secret  ']) {
    const { run, looked_for } = await ask(header);
    t.match(await run(), { principal: { api_key: { id: 'key' } }, session: null });
    t.strictSame(looked_for, ['secret'], header);
  }
  const longest = `!~${'x'.repeat(510)}`;
  const { run, looked_for } = await ask(`Bearer ${longest}`);
  await run();
  t.strictSame(looked_for, [longest]);
});

t.test('a malformed header causes no look-up', async (t) => {
  const headers = [
    '',
    'Bearer',
    'Bearer ',
    'Bearersecret',
    'Basic secret',
    ' Bearer secret',
    'x Bearer secret',
    'Bearer a b',
    'Bearer sécret',
    `Bearer ${'x'.repeat(513)}`,
  ];
  for (const header of headers) {
    const { run, looked_for } = await ask(header);
    await t.rejects(run(), { code: 'unauthenticated', message: /does not have the form/ }, header);
    t.strictSame(looked_for, []);
  }
  const none = await ask(undefined);
  await t.rejects(none.run(), { code: 'unauthenticated', message: /^send an API key/ });
});

t.test('an unknown or expired key is refused', async (t) => {
  await t.rejects((await ask('Bearer x', null)).run(), { code: 'unauthenticated', message: /unknown/ });
  const expired = await ask('Bearer x', key({ expires_at: ago(1) }));
  await t.rejects(expired.run(), { code: 'unauthenticated', message: /expired/ });
  t.strictSame(expired.touched, []);
  await t.resolves((await ask('Bearer x', key({ expires_at: ago(-10 * MINUTE_MS) }))).run());
});

t.test('it expires at that moment', async (t) => {
  const now = Date.now();
  t.intercept(Date, 'now', { value: () => now });
  const expiresAt = new Date(now).toISOString();
  await t.rejects((await ask('Bearer x', key({ expires_at: expiresAt }))).run(), { message: /expired/ });
});

t.test('its last use is recorded every five minutes', async (t) => {
  for (const [lastUsedAt, isNoted] of [
    [null, true],
    [ago(6 * MINUTE_MS), true],
    [ago(4 * MINUTE_MS), false],
  ] as const) {
    const { run, touched } = await ask('Bearer secret', key({ last_used_at: lastUsedAt }));
    await run();
    t.strictSame(touched, isNoted ? ['key'] : [], `${lastUsedAt}`);
  }
});

t.test('a request succeeds if its use cannot be recorded', async (t) => {
  const { run, failTouch, warnings } = await ask('Bearer secret', key({ last_used_at: null }));
  failTouch();
  await run();
  await new Promise(setImmediate);
  t.match(warnings, [{ err: { message: 'away' } }]);
});

t.test('a key needs all scopes; admin includes all but operator', async (t) => {
  const lacks = (scopes: Scope[], asked: Scope[]) => {
    try {
      requireScopes(key({ scopes }), asked);
      return null;
    } catch (error) {
      t.match(error, { code: 'insufficient_scope' });
      return (error as Error).message.replace(/.* scope /, '');
    }
  };
  t.equal(lacks(['jobs:read'], ['jobs:read']), null);
  t.equal(lacks([], []), null);
  t.equal(lacks(['jobs:read'], ['jobs:write']), 'jobs:write');
  t.equal(lacks(['jobs:read'], ['jobs:read', 'models', 'datasets']), 'models, datasets');
  t.equal(lacks(['admin'], ['jobs:read', 'jobs:write', 'admin']), null);
  t.equal(lacks(['admin'], ['operator']), 'operator');
  t.equal(lacks(['operator'], ['operator']), null);
  t.equal(lacks(['operator'], ['admin']), 'admin');
});
