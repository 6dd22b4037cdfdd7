/** Signing in to the console, and out. */
import t, { type Test } from 'tap';
import { ensureBrowser, openPage } from '../../api/testing/browser.js';
import { ADMIN_KEY, startTestStack } from '../../api/testing/stack.js';
import type { SignInCode } from '../../contracts/index.js';
import { axeFindings, refuse } from './console.js';

const skip = await ensureBrowser();

async function start(t: Test) {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { page, complaints } = await openPage(t);
  const code = async () =>
    (await stack.request({ method: 'POST', url: '/v1/sign-in-codes' })).json<SignInCode>().code;
  return { stack, base, page, complaints, code };
}

t.test('a key is exchanged for a cookie that no script reads', { skip }, async (t) => {
  const { base, page, stack } = await start(t);
  await page.goto(base);
  await page.waitForSelector('text=Sign in');
  t.same(await axeFindings(page), []);
  await page.fill('input[name=key]', 'zf_wrong');
  await page.keyboard.press('Enter');
  await page.waitForSelector('[role=alert]:has-text("unknown or was revoked")');
  await page.fill('input[name=key]', ADMIN_KEY);
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=No run yet.');
  t.notOk(
    String(await page.evaluate('JSON.stringify([document.cookie, { ...localStorage }])')).includes('zf_'),
  );
  const [cookie] = await page.context().cookies();
  t.match(cookie, { name: 'zf_session', httpOnly: true, sameSite: 'Strict' });

  const job = await stack.createJob({ name: 'mine' });
  await page.goto(`${base}/#/runs/${job.id}`);
  await page.reload();
  await page.click('button:has-text("Pause")');
  await page.waitForSelector('.badge:has-text("paused")');

  await page.click('.account summary');
  await page.click('text="Sign out"');
  await page.waitForSelector('input[name=key]');
  t.same(await page.context().cookies(), []);
});

t.test('a link signs in once, and does not stay in the address', { skip }, async (t) => {
  const { base, page, code, complaints } = await start(t);
  const link = `${base}/#/sign-in/${await code()}`;
  await page.goto(link);
  await page.waitForSelector('text=No run yet.');
  t.notMatch(page.url(), 'sign-in');
  t.same(
    complaints.filter((text) => !text.includes('401')),
    [],
  );
  await page.context().clearCookies();
  await page.goto('about:blank');
  await page.goto(link);
  await page.waitForSelector('[role=alert]');
  t.equal(await page.locator('input[name=key]').count(), 1);
});

t.test('a link asks before it replaces the session of another key', { skip }, async (t) => {
  const { stack, base, page, code } = await start(t);
  const foreign = await stack.headersIn('team-b');
  await page.goto(`${base}/#/sign-in/${await code()}`);
  await page.waitForSelector('.account:has-text("test")');
  const theirs = await stack.request({ method: 'POST', url: '/v1/sign-in-codes', headers: foreign });
  const link = `${base}/#/sign-in/${theirs.json<SignInCode>().code}`;
  const project = async () => (await page.request.get(`${base}/v1/me`)).json();
  await page.goto('about:blank');
  await page.goto(link);
  await page.waitForSelector('text=This browser is signed in as test');
  t.same(await axeFindings(page), []);
  t.match(await project(), { project: { name: 'default' } }, 'nothing has changed yet');
  await page.click('text=Stay signed in');
  await page.waitForSelector('text=No run yet.');
  await page.goto('about:blank');
  await page.goto(link);
  await page.click('text=Sign in by the link');
  await page.waitForSelector('text=No run yet.');
  t.match(await project(), { project: { name: 'team-b' } });
  t.notMatch(page.url(), 'sign-in');
});

t.test('signing out that is refused says so, and changes nothing', { skip }, async (t) => {
  const { base, page, code } = await start(t);
  await page.goto(`${base}/#/sign-in/${await code()}`);
  await page.waitForSelector('text=No run yet.');
  const unrefuse = await refuse(page, '**/v1/sessions{,/current}', 503, 'job_store_unavailable');
  await page.click('.account summary');
  for (const label of ['Sign out', 'Sign out everywhere']) {
    await page.click(`text="${label}"`);
    const notice = page.locator('.notice:has-text("refused: job_store_unavailable")');
    await notice.waitFor();
    t.ok(await page.isVisible('.account'), label);
    t.same(await axeFindings(page), []);
    await notice.getByRole('button', { name: 'Dismiss' }).click();
  }
  await unrefuse();
  await page.click('text="Sign out"');
  await page.waitForSelector('input[name=key]');
});

t.test('signing out everywhere ends the other browsers', { skip }, async (t) => {
  const { stack, base, page, code } = await start(t);
  const other = await openPage(t);
  for (const one of [page, other.page]) {
    await one.goto(`${base}/#/sign-in/${await code()}`);
    await one.waitForSelector('text=No run yet.');
  }
  const { id } = await stack.createJob();
  await other.page.goto(`${base}/#/runs/${id}`);
  await other.page.waitForSelector('.live');
  await page.click('.account summary');
  await page.click('text=Sign out everywhere');
  await page.waitForSelector('input[name=key]');
  await other.page.waitForSelector('text=The session has ended.', { timeout: 120_000 });
});
