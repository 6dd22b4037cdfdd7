/** Sends secrets in every place and searches every log line for them. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import t from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { ObjectStoreError } from '../../platform/object-store/index.js';
import { ADMIN_KEY, startTestStack, withMethod } from '../testing/stack.js';

const secret = () => randomBytes(24).toString('base64url');

t.test('no secret reaches the log, wherever it is sent', async (t) => {
  const lines: string[] = [];
  let storeError: string | null = null;
  const stack = await startTestStack({
    log: createLogger({
      level: 'trace',
      name: 'api',
      destination: { write: (line: string) => void lines.push(line) },
    }),
    wrap: ({ objects }) => ({
      objects: withMethod(objects, 'put', async (...args) => {
        if (storeError === null) return objects.put(...args);
        throw new ObjectStoreError('object_store_unavailable', storeError, { cause: new Error(storeError) });
      }),
    }),
  });
  t.teardown(() => stack.close());
  const { app } = stack;
  const secrets = [ADMIN_KEY];
  const fresh = (prefix = '') => {
    const value = prefix + secret();
    secrets.push(value.slice(prefix.length));
    return value;
  };
  const json = { 'content-type': 'application/json' };

  // Keys, in the header and in wrong places.
  await app.inject({ url: '/v1/jobs', headers: { authorization: `Bearer ${fresh('zf_')}` } });
  await app.inject({ url: '/v1/jobs', headers: { authorization: `Basic ${fresh()}` } });
  await app.inject({ url: '/v1/jobs', headers: { authorization: `Bearer ${fresh()} ${fresh('zf_')}` } });
  await app.inject({ url: '/v1/jobs', headers: { cookie: `session=${fresh()}`, 'x-api-key': fresh() } });
  await app.inject({
    method: 'POST',
    url: '/tinker/api/v1/create_session',
    headers: { 'x-api-key': fresh('tml-zf_') },
  });
  for (const name of ['api_key', 'apikey', 'access_token', 'client_secret', 'password'])
    await stack.request({ url: `/v1/jobs?${name}=${fresh()}&limit=1` });
  await stack.request({ url: `/v1/jobs/${fresh('zf_')}` });
  await stack.request({ url: `/nowhere/${fresh('zf_')}?key=${fresh('zf_')}` });

  // Secrets created by the API.
  const made = await stack.request({
    method: 'POST',
    url: '/v1/api-keys',
    payload: { name: 'k', scopes: ['jobs:read'] },
  });
  const key = made.json<{ id: string; secret: string }>();
  secrets.push(key.secret.slice(3));
  const rotated = await stack.request({ method: 'POST', url: `/v1/api-keys/${key.id}/rotate`, payload: {} });
  secrets.push(rotated.json<{ secret: string }>().secret.slice(3));
  for (const token of [fresh('hf_'), `${fresh('hf_')} `])
    await stack.request({ method: 'PUT', url: '/v1/hub-token', payload: { token } });
  // Codes and sessions of browsers, and what is wrong about them.
  const code = (await stack.request({ method: 'POST', url: '/v1/sign-in-codes' })).json<{ code: string }>();
  const signIn = { method: 'POST' as const, url: '/v1/sessions' };
  const signedIn = await app.inject({ ...signIn, payload: { code: code.code } });
  const [cookie = ''] = String(signedIn.headers['set-cookie']).split(';');
  t.equal(signedIn.statusCode, 201);
  secrets.push(code.code.slice('zf_code_'.length), cookie.slice('zf_session=zf_session_'.length));
  await app.inject({ url: '/v1/jobs', headers: { cookie } });
  await app.inject({ method: 'DELETE', url: '/v1/sessions', headers: { cookie } });
  await app.inject({ url: '/v1/jobs', headers: { cookie: `zf_session=${fresh()}` } });
  await app.inject({ ...signIn, payload: { code: fresh() } });
  await app.inject({ ...signIn, payload: { token: fresh('zf_'), code: fresh() } });
  await app.inject({ ...signIn, url: `/v1/sessions?code=${fresh('zf_code_')}`, payload: {} });
  // A share, in the header and as a session.
  const { id: jobId } = await stack.createJob();
  const shares = `/v1/jobs/${jobId}/shares`;
  const share = (await stack.request({ method: 'POST', url: shares })).json<{ token: string }>();
  secrets.push(share.token.slice('zf_share_'.length));
  await app.inject({ url: '/v1/jobs', headers: { authorization: `Bearer ${share.token}` } });
  await app.inject({ ...signIn, payload: { token: share.token } });
  await app.inject({ url: `/v1/jobs/${share.token}` });
  const payload = { url: `https://user:${fresh()}@hooks.example.com/?token=${fresh()}` };
  await stack.request({ method: 'POST', url: '/v1/webhooks', payload });
  const webhook = await stack.request({
    method: 'POST',
    url: '/v1/webhooks',
    payload: { url: 'https://hooks.example.com/' },
  });
  secrets.push(webhook.json<{ secret: string }>().secret.slice(6));

  // Presigned URLs, as addresses and as data.
  const signature = fresh();
  const signed = `s3://bucket/key?X-Amz-Credential=${fresh()}&X-Amz-Signature=${signature}&X-Amz-Security-Token=${fresh()}`;
  await stack.request({ method: 'POST', url: `/v1/datasets?name=x&uri=${encodeURIComponent(signed)}` });
  await stack.request({ method: 'POST', url: `/v1/datasets?name=x&uri=${signed}` });

  // Refused bodies.
  await stack.request({ method: 'POST', url: '/v1/jobs', headers: json, payload: `{"token": "${fresh()}" ` });
  await stack.request({
    method: 'POST',
    url: '/v1/jobs',
    payload: { token: fresh(), password: fresh() },
  });

  // Error messages of the stores.
  storeError = `PUT https://bucket/key?X-Amz-Signature=${fresh()} of redis://:${fresh()}@host and rediss://u:${fresh()}@h failed`;
  await stack.request({
    method: 'POST',
    url: '/v1/datasets?name=x',
    headers: { 'content-type': 'text/plain' },
    payload: 'text',
  });
  await stack.redis.kill();
  await app.inject({ ...signIn, payload: { code: fresh() } });
  await app.inject({ url: '/v1/jobs', headers: { cookie: `zf_session=${fresh()}` } });
  await stack.request({ method: 'POST', url: '/v1/api-keys', payload: { name: 'k', scopes: ['jobs:read'] } });
  await stack.request({
    method: 'POST',
    url: '/v1/webhooks',
    payload: { url: 'https://hooks.example.com/' },
  });
  await stack.redis.start();

  // Malformed requests.
  const { port } = new URL(await stack.listen());
  for (const text of [
    `GET /${fresh('zf_')} HTTP/9\r\nauthorization: Bearer ${fresh()}\r\n\r\n`,
    `GET / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${fresh()}${'a'.repeat(20_000)}\r\n\r\n`,
  ])
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(text));
      socket.on('data', () => undefined).on('close', () => resolve());
    });

  t.ok(lines.length > 40, `${lines.length} lines`);
  t.ok(lines.some((line) => line.includes('"level":"error"')));
  const log = lines.join('');
  for (const value of secrets)
    t.notOk(log.includes(value), `${value} is in ${lines.find((line) => line.includes(value))}`);
  for (const line of lines) t.doesNotThrow(() => JSON.parse(line), line);
});

t.test('secrets of the environment are recognized by their value', async (t) => {
  const password = 'p"ss/w@rd%20\\';
  const env = {
    AWS_SECRET_ACCESS_KEY: 'abc/def+ghi=jkl',
    AWS_SESSION_TOKEN: 'token/of/a/session',
    ZEROFLEET_API_KEY: 'a-key-of-my-own-choice',
    ZEROFLEET_REDIS_URL: `redis://user:${encodeURIComponent(password)}@host:6379`,
    PATH: '/usr/bin',
  };
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    name: 'test',
    env,
    destination: { write: (line: string) => void lines.push(line) },
  });
  for (const value of [...Object.values(env), password, encodeURIComponent(password)]) {
    log.info({ error: { text: `it was ${value}.` }, list: [value] }, `message ${value}`);
    log.error({ err: Object.assign(new Error(value), { command: { args: [value] } }) }, 'failed');
  }
  const text = lines.join('');
  for (const value of [env.AWS_SECRET_ACCESS_KEY, env.AWS_SESSION_TOKEN, env.ZEROFLEET_API_KEY, password])
    t.notOk(text.includes(JSON.stringify(value).slice(1, -1)), value);
  t.notOk(text.includes(encodeURIComponent(password)));
  t.ok(text.includes('/usr/bin'));
  for (const line of lines) t.doesNotThrow(() => JSON.parse(line), line);
});
