/** The administration in the console: users, and the end of the sessions of others. */
import t, { type Test } from 'tap';
import { ensureBrowser, openPage } from '../../api/testing/browser.js';
import { startTestStack } from '../../api/testing/stack.js';
import { looksWell, openConsole } from './console.js';

const skip = await ensureBrowser();
const ENDED = 'text=The session has ended.';
const LONG = { timeout: 120_000 };
const ADA = {
  issuer: 'https://login.example.com',
  subject: 'ada',
  name: '<b>Ada</b>',
  email: 'ada@example.com',
  project: 'default',
  scopes: ['admin' as const],
};

async function start(t: Test) {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  /** A browser with a session of this key or user. */
  const browserOf = async (principalId: string, hash: string) => {
    const token = `zf_session_${principalId}`;
    await stack.store.createSession(token, { principal_id: principalId }, { secure: false });
    const { page } = await openPage(t);
    await page.context().addCookies([{ name: 'zf_session', value: token, url: base }]);
    await page.goto(`${base}/${hash}`);
    return page;
  };
  const admin = await openConsole(t, stack, base);
  const row = (name: string) => admin.page.locator(`main tr:has-text("${name}")`);
  const signOut = async (name: string) => {
    await row(name).getByRole('button', { name: 'Sign out' }).click();
    await admin.page.waitForSelector('.asking .danger:focus');
    await admin.page.keyboard.press('Enter');
    await row(name).getByText('signed out').waitFor();
  };
  return { ...admin, browserOf, row, signOut };
}

t.test('a user is seen, and signed out everywhere', { skip }, async (t) => {
  const { stack, page, open, complaints, browserOf, row, signOut } = await start(t);
  await open('#/admin?tab=users');
  await page.waitForSelector('text=No user is signed in.');
  await looksWell(t, page);
  const { id } = await stack.store.putUser(ADA, 3_600_000);
  const theirs = await browserOf(id, '#/datasets');
  await theirs.waitForSelector('text=No dataset yet.');
  await row('<b>Ada</b>').locator('td:text-is("1")').waitFor(LONG);
  t.match(await row('<b>Ada</b>').textContent(), /ada@example\.com.*admin/);
  await looksWell(t, page);
  await signOut('<b>Ada</b>');
  await row('<b>Ada</b>').locator('td:text-is("0")').waitFor();
  await theirs.click('nav a:has-text("Models")');
  await theirs.waitForSelector(ENDED);
  await row('<b>Ada</b>').getByText('Audit').click();
  await page.waitForSelector('text=No entry passes these filters.');
  t.same(complaints, []);
});

t.test('the sessions of a key end, and its next action asks for a sign-in', { skip }, async (t) => {
  const { stack, page, open, complaints, browserOf, signOut } = await start(t);
  const { id: dataset } = await stack.upload('a text '.repeat(500));
  const { id } = await stack.store.putApiKey('zf_theirs', { name: 'theirs', scopes: ['admin'] });
  const theirs = await browserOf(id, `#/datasets/${dataset}`);
  await theirs.waitForSelector('text=None.');
  await open('#/admin');
  await signOut('theirs');
  await theirs.click('button:has-text("Delete")');
  await theirs.click('.asking .danger');
  await theirs.waitForSelector(ENDED);
  t.equal((await stack.request({ url: `/v1/datasets/${dataset}` })).statusCode, 200);
  const headers = { authorization: 'Bearer zf_theirs' };
  t.equal((await stack.request({ url: '/v1/me', headers })).statusCode, 200, 'the key stays valid');
  await page.click('role=tab[name=audit]');
  await page.waitForSelector(`tbody tr:has-text("end sessions of"):has-text("${id}"):has-text("succeeded")`);
  t.same(complaints, []);
});

t.test('an admin signs itself out', { skip }, async (t) => {
  const { stack, browserOf } = await start(t);
  const { id } = await stack.store.putUser(ADA, 3_600_000);
  const own = await browserOf(id, '#/admin?tab=users');
  await own.locator('tr:has-text("you")').getByRole('button', { name: 'Sign out' }).click();
  t.match(await own.textContent('.asking'), /also yours/);
  await own.click('.asking .danger');
  await own.waitForSelector(ENDED);
});
