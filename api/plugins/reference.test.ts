import t from 'tap';
import { loadContract } from '../operations.js';
import { noBrowser, openPage } from '../testing/browser.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';

t.test('paths below /docs', async (t) => {
  const { app, close } = await startTestStack();
  t.teardown(close);
  const page = await app.inject({ url: '/docs' });
  t.equal(page.statusCode, 200);
  t.match(page.headers['content-type'], /^text\/html/);
  t.match(page.headers['content-security-policy'], /default-src 'self'/);
  const { document } = loadContract();
  t.strictSame((await app.inject({ url: '/docs/json' })).json().paths, document.paths);
  for (const url of [
    '/docs/static/../../package.json',
    '/docs/static/%2e%2e/%2e%2e/package.json',
    '/docs/nothing',
  ]) {
    const refused = await app.inject({ url });
    t.equal(refused.statusCode, 404, url);
    t.equal(refused.json().code, 'route_not_found', url);
  }
});

t.test('the reference in a browser', { skip: noBrowser, timeout: 120_000 }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { page, complaints } = await openPage(t);
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(base) && !url.startsWith('data:')) elsewhere.push(url);
  });

  await page.goto(`${base}/docs`);
  await page.waitForSelector('.opblock');
  const { operations, document } = loadContract();
  const webhooks = Object.keys((document as { webhooks?: object }).webhooks ?? {}).length;
  t.equal(await page.locator('.opblock').count(), operations.size + webhooks, 'every operation is listed');

  await page.click('button.authorize');
  await page.fill('.auth-container input', ADMIN_KEY);
  await page.click('.auth-btn-wrapper button.authorize');
  await page.click('.auth-btn-wrapper button.btn-done');
  const block = page.locator('#operations-jobs-listJobs');
  await block.locator('.opblock-summary-control').click();
  await block.locator('.try-out__btn').click();
  await block.locator('button.execute').click();
  const answer = block.locator('.live-responses-table .response');
  await answer.waitFor();
  t.match(await answer.textContent(), /^200[\s\S]*"next_cursor": null/, 'a request can be tried out');
  t.same(complaints, []);
  t.same(elsewhere, [], 'nothing is fetched from anywhere else');
});
