/** The command line against the real API, in this process: the console in a browser. */
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { ADMIN_KEY } from '../../api/testing/stack.js';
import { commandLine, start } from './command-line.js';

t.test('the printed address signs a browser in, once', async (t) => {
  const { stack, zerofleet, url } = await start(t);
  const signIn = async (address: string) => {
    const [base, code] = address.split('/#/sign-in/');
    t.equal(base, url);
    const payload = { code };
    return stack.app.inject({ method: 'POST', url: '/v1/sessions', payload });
  };
  for (const args of [['open', '--print'], ['open']]) {
    const printed = await zerofleet(args);
    t.match(
      printed,
      { code: 0, out: /^http:\S+$/, err: /once and within two minutes/ },
      'there is no display',
    );
    const reply = await signIn(printed.out);
    t.match(reply.json(), { me: { api_key: { name: 'test' } } });
    t.equal((await signIn(printed.out)).statusCode, 401);
    const headers = { cookie: String(reply.headers['set-cookie']).split(';')[0] };
    const status = async () => (await stack.app.inject({ url: '/v1/me', headers })).statusCode;
    t.equal(await status(), 200);
    t.match(await zerofleet(['sign-out']), { code: 0, err: /have ended/ });
    t.equal(await status(), 401);
  }
  const { url: address, expires_at } = JSON.parse((await zerofleet(['open', '--json'])).out);
  t.ok(Date.parse(expires_at) > Date.now());
  t.equal((await signIn(address)).statusCode, 201);
});

t.test('an admin signs others out', async (t) => {
  const { stack, zerofleet } = await start(t);
  const ada = { issuer: 'https://login.example.com', subject: 'ada', name: 'Ada', email: null };
  const { id } = await stack.store.putUser({ ...ada, project: 'default', scopes: ['models'] }, 3_600_000);
  await stack.store.createSession('theirs', { principal_id: id }, { secure: false });
  t.match(await zerofleet(['users']), { code: 0, out: new RegExp(`${id} +Ada +models .* 1$`, 'm') });
  t.match(await zerofleet(['sign-out', id]), { code: 0, err: new RegExp(`${id} have ended`) });
  t.equal(await stack.store.findSession('theirs'), null);
  t.match(await zerofleet(['users']), { out: / 0$/m });
  t.match(await zerofleet(['sign-out', `usr_${'0'.repeat(26)}`]), { code: 1, err: /principal_not_found/ });
});

t.test('a browser is opened', { skip: process.platform !== 'linux' && 'xdg-open' }, async (t) => {
  const { dir, url } = await start(t);
  const env = { ZEROFLEET_URL: url, ZEROFLEET_API_KEY: ADMIN_KEY, DISPLAY: ':0', PATH: dir };
  const zerofleet = commandLine(env);
  t.match(await zerofleet(['open']), { code: 0, out: /^http/ }, 'there is no xdg-open');
  const opener = join(dir, 'xdg-open');
  await writeFile(opener, '#!/bin/sh\necho "$1" > "$0.tmp"\n/bin/mv "$0.tmp" "$0.address"\n');
  await chmod(opener, 0o755);
  t.match(await zerofleet(['open']), { code: 0, out: '', err: /opens in the browser/ });
  const read = () => readFile(`${opener}.address`, 'utf8').catch(() => null);
  let opened = await read();
  while (opened === null) {
    await sleep(5);
    opened = await read();
  }
  t.match(opened, /\/#\/sign-in\/zf_code_[\w-]{43}\n$/);
});
