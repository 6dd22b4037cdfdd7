/** Signing in to the console by an OpenID provider. */
import t from 'tap';
import { ensureBrowser, openPage } from '../../api/testing/browser.js';
import { startProvider, testSettings } from '../../api/testing/oidc.js';
import { startTestStack } from '../../api/testing/stack.js';
import { axeFindings } from './console.js';

const skip = await ensureBrowser();

t.test('a user signs in at the provider, and out', { skip }, async (t) => {
  const settings = testSettings();
  const stack = await startTestStack({ oidc: settings });
  t.teardown(() => stack.close());
  const base = await stack.listen();
  settings.public_url = `${base}/`;
  settings.issuer = await startProvider(t, `${base}/sign-in/oidc/callback`);
  const { page } = await openPage(t);
  const signIn = async (login: string) => {
    await page.goto(base);
    await page.click('text=Sign in with Example Login');
    await page.fill('input[name=login]', login);
    await page.fill('input[name=password]', 'any');
    await page.click('button[type=submit]');
    await page.waitForSelector('input[name=prompt][value=consent]', { state: 'attached' });
    await page.click('button[type=submit]');
  };
  await page.goto(base);
  await page.waitForSelector('text=Sign in with Example Login');
  t.same(await axeFindings(page), []);

  await signIn('guest');
  await page.waitForSelector('[role=alert]:has-text("no role of yours has access")');
  t.same(await axeFindings(page), []);
  await page.context().clearCookies();
  await page.goto('about:blank');

  await signIn('admin-ada');
  await page.waitForSelector('.account:has-text("admin-ada by name")');
  await page.waitForSelector('text=No run yet.');
  t.notOk(String(await page.evaluate('document.cookie')).includes('zf_'));
  await page.click('.account summary');
  await page.click('text=Sign out everywhere');
  await page.waitForSelector('input[name=key]');
});
