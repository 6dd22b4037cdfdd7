/** The administration in the console: keys, and who may see what. */
import t from 'tap';
import { ensureBrowser, openPage } from '../../api/testing/browser.js';
import { startTestStack } from '../../api/testing/stack.js';
import type { ApiKey, Page as Entries, Scope } from '../../contracts/index.js';
import {
  axeFindings,
  countRequests,
  errorAt,
  looksWell,
  openConsole,
  refusal,
  startConsole,
  takeSecret,
} from './console.js';

const skip = await ensureBrowser();

t.test('keys', { skip }, async (t) => {
  const { page, complaints, stack, base, open } = await startConsole(t);
  const stored = async (project = 'default') =>
    (await stack.request({ url: `/v1/api-keys?project=${project}` })).json<Entries<ApiKey>>().data;
  const answerOf = async (secret: string) => {
    const headers = { authorization: `Bearer ${secret}` };
    return (await stack.request({ url: '/v1/me', headers })).statusCode;
  };
  const row = (name: string) => page.locator(`[aria-label=Keys] tr:has-text("${name}")`);
  const secrets: string[] = [];
  const dialog = page.locator('dialog');
  await open('#/runs');
  await page.waitForSelector('h1:has-text("Runs")');

  await t.test('a key is created with scopes, limits and an expiry; its secret is shown once', async (t) => {
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await row('test').waitFor();
    await looksWell(t, page);
    await page.click('text=New key');
    await page.fill('dialog [name=name]', '<b>ci</b>');
    await page.click('dialog button:has-text("Create")');
    await errorAt(dialog, 'Scopes', '1');
    await page.waitForSelector('dialog [name=scopes]:focus');
    t.equal(await page.inputValue('dialog [name=name]'), '<b>ci</b>', 'the input stays');
    await page.check('dialog [value="jobs:read"]');
    await page.check('dialog [value=models]');
    await page.fill('dialog [name=expires_at]', '2020-01-31T08:00');
    await page.click('dialog button:has-text("Create")');
    await errorAt(dialog, 'Expires (never, if empty)', 'has passed');
    await page.waitForSelector('dialog [name=expires_at]:focus');
    await page.fill('dialog [name=expires_at]', '2999-01-31T08:00');
    await page.fill('dialog [name=requests_per_minute]', '1234');
    t.same(await axeFindings(page), []);
    await page.click('dialog button:has-text("Create")');
    await page.waitForSelector('dialog :text("Secret")');
    t.same(await axeFindings(page), []);
    secrets.push(await takeSecret(t, page));
    t.match(await row('<b>ci</b>').textContent(), /default.*jobs:read, models.*never.*2999.*1,234/);
    const [key] = await stored();
    t.match(key, { scopes: ['jobs:read', 'models'], requests_per_minute: 1234 });
    t.equal(await answerOf(secrets[0]!), 200);
    t.match(complaints.splice(0), [/422/, /422/]);
  });

  await t.test('its name, expiry and limit are changed; errors stand at their fields', async (t) => {
    const change = () => row('<b>ci</b>').locator('text=Change').click();
    await change();
    t.equal(await page.inputValue('dialog [name=expires_at]'), '2999-01-31T08:00');
    t.equal(await page.inputValue('dialog [name=requests_per_minute]'), '1234');
    const requests = countRequests(page);
    await page.click('dialog button:has-text("Save")');
    await dialog.waitFor({ state: 'detached' });
    t.same(
      requests.filter((request) => !request.startsWith('GET')),
      [],
      'nothing was changed',
    );
    await change();
    await page.fill('dialog [name=expires_at]', '2020-01-31T08:00');
    await page.fill('dialog [name=requests_per_minute]', '9999999');
    await page.click('dialog button:has-text("Save")');
    await errorAt(dialog, "Requests per minute (the server's limit, if empty)", '1000000');
    t.same(await axeFindings(page), []);
    await page.fill('dialog [name=requests_per_minute]', '');
    await page.click('dialog button:has-text("Save")');
    await errorAt(dialog, 'Expires (never, if empty)', 'has passed');
    t.equal(await page.locator('dialog .errors').count(), 1);
    await page.fill('dialog [name=expires_at]', '');
    await page.fill('dialog [name=name]', '<b>ci</b> changed');
    await page.click('dialog button:has-text("Save")');
    await row('<b>ci</b> changed').waitFor();
    t.match(await row('<b>ci</b> changed').textContent(), /just now.*never.*default/);
    const [key] = await stored();
    t.match(key, { name: '<b>ci</b> changed', expires_at: null, requests_per_minute: null });
    t.match(complaints.splice(0), [/422/, /422/]);
  });

  await t.test('a rotated key has two secrets for a while, or one', async (t) => {
    // While the request runs the dialog stays, because the answer has the secret.
    await page.route('**/rotate', async (route) => {
      await page.keyboard.press('Escape');
      await route.continue();
    });
    for (const overlap of ['3600', '0']) {
      await row('<b>ci</b>').locator('text=Rotate').click();
      await page.selectOption('dialog select', overlap);
      await page.click('dialog button:has-text("Rotate")');
      secrets.push(await takeSecret(t, page));
      if (overlap === '3600') await row('previous secret').waitFor();
    }
    await page.unroute('**/rotate');
    await row('previous secret').waitFor({ state: 'detached' });
    t.same(await Promise.all(secrets.map(answerOf)), [401, 401, 200]);
  });

  await t.test('a refused rotation keeps the dialog open', async (t) => {
    await row('<b>ci</b>').locator('text=Rotate').click();
    const [key] = await stored();
    await stack.request({ method: 'DELETE', url: `/v1/api-keys/${key!.id}` });
    await page.click('dialog button:has-text("Rotate")');
    await refusal(t, page.locator('dialog'), 'api_key_not_found');
    await page.click('dialog >> text=Close');
    await row('<b>ci</b>').waitFor({ state: 'detached' });
    t.match(complaints.splice(0), [/404/]);
  });

  await t.test('an operator sees the keys of other projects, and makes their first one', async (t) => {
    await page.click('text=New key');
    await page.fill('dialog [name=name]', 'first');
    await page.check('dialog [value=admin]');
    await page.fill('dialog [name=project]', 'team-b');
    await page.click('dialog button:has-text("Create")');
    t.equal(await answerOf(await takeSecret(t, page)), 200);
    await page.selectOption('main select', 'team-b');
    await row('first').waitFor();
    t.match(page.url(), /project=team-b/);
    t.equal(await row('test').count(), 0);
  });

  await t.test('a key is revoked after it was asked once; a refusal stays', async (t) => {
    const revoke = async () => {
      await row('first').locator('button:has-text("Revoke")').click();
      await page.waitForSelector('.asking .danger:focus');
    };
    await revoke();
    await page.click('text=Keep');
    t.equal((await stored('team-b')).length, 1);
    await page.route('**/v1/api-keys/*', (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        body: JSON.stringify({ title: 'no', status: 503, code: 'job_store_unavailable', detail: 'not now' }),
      }),
    );
    await revoke();
    await page.keyboard.press('Enter');
    await refusal(t, row('first'), 'not now');
    await page.unroute('**/v1/api-keys/*');
    await revoke();
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=This project has no key.');
    t.same(await stored('team-b'), []);
    t.match(
      complaints.splice(0).filter((text) => !text.includes('503')),
      [],
    );
  });

  await t.test('an admin without the scope operator sees and grants no more than its own', async (t) => {
    const { page, complaints, open } = await openConsole(t, stack, base, {
      headers: await stack.headersIn('team-c'),
    });
    const requests: string[] = [];
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    await open('#/admin');
    await page.waitForSelector('.badge:has-text("yours")');
    t.equal(await page.locator('main select').count(), 0);
    await page.click('text=New key');
    const scopes = await page.locator('dialog [name=scopes]').all();
    t.same(await Promise.all(scopes.map((scope) => scope.getAttribute('value'))), [
      'jobs:read',
      'jobs:write',
      'datasets',
      'models',
      'admin',
    ] satisfies Scope[]);
    t.equal(await page.locator('dialog [name=project]').count(), 0);
    await page.keyboard.press('Escape');
    await page.click('.api-keys >> text=Change');
    await page.fill('dialog [name=name]', 'of team c');
    await page.click('dialog button:has-text("Save")');
    await page.waitForSelector('.account:has-text("of team c")');
    await page.click('role=tab[name=usage]');
    await page.waitForSelector('text=team-c now');
    t.equal(await page.locator('[aria-label=Projects]').count(), 0);
    t.notOk(requests.includes('/v1/projects'));
    t.same(complaints, []);
  });

  await t.test('a key that is not admin is not offered the page', async (t) => {
    const headers = await stack.headersOf('jobs:read', 'jobs:write');
    const { page, complaints, open } = await openConsole(t, stack, base, { headers });
    await open('#/admin?tab=audit');
    await page.waitForSelector('text=It needs the scope admin');
    t.equal(await page.locator('nav a:has-text("Fleet")').count(), 1);
    t.equal(await page.locator('nav a:has-text("Admin")').count(), 0);
    t.equal(await page.locator('[role=tab]').count(), 0);
    t.same(complaints, []);
  });

  t.same(complaints, []);
});

t.test('a session that ends by its own rotation shows the new secret first', { skip }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { page } = await openPage(t);
  // As on a page without TLS, whose scripts have no clipboard of the browser.
  await page.addInitScript(`Object.defineProperty(window, 'isSecureContext', { value: false })`);
  const { authorization } = await stack.headersIn('default');
  await page.goto(await stack.listen());
  t.notOk(await page.evaluate('isSecureContext'));
  await page.fill('input[name=key]', authorization.replace('Bearer ', ''));
  await page.keyboard.press('Enter');
  await page.click('nav a:has-text("Admin")');
  const own = page.locator('tr:has-text("yours")');
  await own.locator('text=Rotate').click();
  await page.selectOption('dialog select', '0');
  await page.click('dialog button:has-text("Rotate")');
  const secret = await takeSecret(t, page);
  await page.waitForSelector('text=The session has ended.');
  await page.fill('input[name=key]', secret);
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=yours');
});
