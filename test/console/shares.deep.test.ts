/** Links that show one run to people without a key. */
import t, { type Test } from 'tap';
import { ensureBrowser, openPage } from '../../api/testing/browser.js';
import { ADMIN_KEY, startTestStack } from '../../api/testing/stack.js';
import { claimAndTrain } from '../../api/testing/training.js';
import {
  axeFindings,
  countRequests,
  cuttable,
  isTooWide,
  openConsole,
  refuse,
  untilCount,
} from './console.js';

const skip = await ensureBrowser();

async function start(t: Test) {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { id } = await stack.createJob({ name: 'shown' });
  await claimAndTrain(stack.store, id, { steps: 5 });
  const share = (lifeMs = 86_400_000, token = 'zf_share_one') =>
    stack.store.createShare(token, { job_id: id, description: 'for a review', life_ms: lifeMs });
  return { stack, base, id, share };
}

t.test('a link is made, shown once, and revoked', { skip }, async (t) => {
  const { stack, base, id } = await start(t);
  const { page, complaints, open } = await openConsole(t, stack, base);
  await open(`#/runs/${id}`);
  await page.click('button:has-text("Share")');
  await page.waitForSelector('text=This run has no link.');
  await page.selectOption('dialog select', '30');
  await page.fill('dialog label:has-text("Note") input', '<b>for a review</b>');
  await page.click('text=Create a link');
  const link = await page.inputValue('input[readonly]');
  t.ok(link.startsWith(`${base}/#/shared/zf_share_`));
  await page.waitForSelector('td:has-text("<b>for a review</b>")');
  t.same(await axeFindings(page), []);
  t.notOk(await isTooWide(page, 390));

  const viewer = await openPage(t);
  await viewer.page.goto(link);
  await viewer.page.waitForSelector('h1:has-text("shown")');

  await page.keyboard.press('Escape');
  await page.click('button:has-text("Share")');
  await page.waitForSelector('td:has-text("for a review")');
  t.equal(await page.locator('input[readonly]').count(), 0, 'it is shown once');
  await page.click('dialog td button:has-text("Revoke")');
  await page.click('dialog .asking button:has-text("Revoke")');
  await page.waitForSelector('text=This run has no link.');
  await viewer.page.waitForSelector('text=The shared link has expired or was revoked.', { timeout: 120_000 });
  t.same(complaints, []);
});

t.test('a link shows one run and nothing else', { skip }, async (t) => {
  const { stack, base, id, share } = await start(t);
  const other = await stack.createJob({ name: 'other' });
  await share();
  const { page, complaints } = await openPage(t);
  const seen = countRequests(page);
  await page.goto(`${base}/#/shared/zf_share_one`);
  await page.waitForSelector('h1:has-text("shown")');
  await page.waitForSelector('.live');
  await page.waitForSelector('text=Shared with you, read only, until');
  t.notMatch(page.url(), 'zf_share');
  t.notOk(
    String(await page.evaluate('JSON.stringify([document.cookie, { ...localStorage }])')).includes('zf_'),
  );
  t.equal(await page.locator('nav').count(), 0);
  t.same(await axeFindings(page), []);
  for (const width of [390, 1280]) t.notOk(await isTooWide(page, width), `${width} px`);
  for (const tab of ['charts', 'checkpoints', 'events', 'logs', 'document', 'attempts', 'overview']) {
    await page.click(`[role=tab]:has-text("${tab}")`);
    await page.waitForSelector('#panel > *');
    t.equal(await page.locator('#panel [role=alert]').count(), 0, tab);
  }
  for (const name of ['Share', 'Pause', 'Cancel', 'Verify', 'Try it'])
    t.equal(await page.locator(`text="${name}"`).count(), 0, name);
  t.same(
    seen.filter((request) => !/ \/v1\/(me|sessions|jobs\/job_)/.test(request)),
    [],
    'it asks for nothing that it may not see',
  );
  t.notOk(seen.some((request) => request.includes(other.id)));
  await page.reload();
  await page.waitForSelector('h1:has-text("shown")');
  t.same(
    complaints.filter((text) => !text.includes('401')),
    [],
  );
  await page.click('text="Leave"');
  await page.waitForSelector('input[name=key]');
  t.same(await page.context().cookies(), []);
  t.match(await stack.store.listShares(id), [{ description: 'for a review' }], 'the link stays');
});

t.test('a link whose server refuses or goes away', { skip }, async (t) => {
  const { base, share } = await start(t);
  await share();
  const way = await cuttable(t, base);
  const { page } = await openPage(t);
  const offline = '.notice:has-text("does not answer")';
  const long = { timeout: 120_000 };

  await t.test('it is opened when the server is back', async (t) => {
    await page.goto(way.url);
    await page.waitForSelector('input[name=key]');
    way.cut();
    await page.evaluate("location.hash = '#/shared/zf_share_one'");
    await page.waitForSelector(offline, long);
    t.equal(await page.locator('text=Ask the person').count(), 0, 'the link may be right');
    way.mend();
    await page.waitForSelector('h1:has-text("shown")', long);
  });

  await t.test('the run stays, and goes on', async (t) => {
    await page.waitForSelector('.live', long);
    way.cut();
    await page.waitForSelector(offline, long);
    t.ok(await page.isVisible('h1:has-text("shown")'));
    way.mend();
    await untilCount(page, offline, 0);
    await page.waitForSelector('.live', long);
  });

  await t.test('one who could not leave is still there', async (t) => {
    const unrefuse = await refuse(page, '**/v1/sessions/current', 503, 'job_store_unavailable');
    await page.click('text="Leave"');
    const notice = page.locator('.notice:has-text("refused: job_store_unavailable")');
    await notice.waitFor(long);
    t.ok(await page.isVisible('h1:has-text("shown")'));
    t.same(await axeFindings(page), []);
    t.notOk(await isTooWide(page, 390));
    await unrefuse();
    await notice.getByRole('button', { name: 'Dismiss' }).click();
    await page.click('text="Leave"');
    await page.waitForSelector('input[name=key]');
  });
});

t.test(
  'a link keeps a session that reads the run, and asks before it replaces another one',
  { skip },
  async (t) => {
    const { stack, base, id, share } = await start(t);
    await share();
    const { page } = await openPage(t);
    const signIn = async (key: string) => {
      await page.goto('about:blank');
      await page.goto(base);
      await page.fill('input[name=key]', key);
      await page.keyboard.press('Enter');
      await page.waitForSelector('.account');
    };
    const follow = async (token: string) => {
      await page.goto('about:blank');
      await page.goto(`${base}/#/shared/${token}`);
    };
    await signIn(ADMIN_KEY);
    await follow('zf_share_one');
    await page.waitForSelector('h1:has-text("shown")');
    t.equal(await page.locator('.account').count(), 1, 'it is still signed in');
    t.match(page.url(), `#/runs/${id}`);
    await page.context().clearCookies();

    await stack.store.putApiKey('zf_foreign', { name: 'foreign', scopes: ['admin'], project: 'team-b' });
    await signIn('zf_foreign');
    await follow('zf_share_one');
    await page.waitForSelector('text=This browser is signed in as foreign');
    t.same(await axeFindings(page), []);
    await page.click('text=Stay signed in');
    await page.waitForSelector('.account:has-text("foreign")');
    await follow('zf_share_one');
    await page.click('text=Open the shared run');
    await page.waitForSelector('text=Shared with you');

    await follow('zf_share_unknown');
    await page.waitForSelector('[role=alert]:has-text("unknown, has expired or was revoked")');
    await page.waitForSelector('text=Ask the person who sent the link');
    await untilCount(page, '.sign-in', 1);
  },
);
