/** Overview and document of a run, and the refreshed list. */
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { startTestStack } from '../../api/testing/stack.js';
import { claimAndTrain } from '../../api/testing/training.js';
import { axeFindings, isTooWide, openConsole, refuse, startConsole, untilCount } from './console.js';

const skip = await ensureBrowser();

t.test('the overview of a run', { skip }, async (t) => {
  const { page, complaints, stack, open } = await startConsole(t);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const { id } = await stack.createJob({ name: 'watched' });

  await t.test('says why it waits, and an error of that stays until it is read again', async (t) => {
    const unrefuse = await refuse(page, '**/v1/pools', 403, 'missing_scope');
    await open(`#/runs/${id}`);
    const card = page.locator('[aria-label="Why it waits"]');
    await card.locator('.notice:has-text("missing_scope")').waitFor();
    await unrefuse();
    await page.waitForSelector('text=the pool has no workers', { timeout: 120_000 });
    t.match(await card.textContent(), /1 in the queue of default/);
    await untilCount(page, '[aria-label="Why it waits"] .notice', 0);
    t.same(await axeFindings(page), []);
    t.match(complaints.splice(0), [/403/]);
  });

  await t.test('shows the ranks over time and the digest of the newest checkpoint', async (t) => {
    const execution = await claimAndTrain(stack.store, id, { steps: 4 });
    // It resizes before a step is done, so that no point of the curve has this number of ranks.
    for (const worldSize of [4, 3]) {
      await stack.store.transition(id, execution, 'starting');
      await stack.store.transition(id, execution, 'running', { patch: { world_size: worldSize } });
    }
    await page.waitForSelector('.band rect >> nth=2', { timeout: 120_000 });
    t.match(
      await page.getAttribute('.band', 'aria-label'),
      /2 ranks from .*; 4 ranks from .*; 3 ranks from /,
    );
    await untilCount(page, '[aria-label="Why it waits"]', 0);
    await open(`#/runs/${id}`);
    await page.click('text=Copy the digest');
    await page.waitForSelector('.proof >> text=copied');
    const digest = (await stack.store.getJob(id))?.latest_checkpoint?.state_digest;
    t.equal(await page.evaluate('navigator.clipboard.readText()'), digest);
    t.same(await axeFindings(page), []);
    for (const width of [390, 2560, 1280]) t.notOk(await isTooWide(page, width), `fits in ${width}`);
  });

  await t.test('the document is marked where it was filled in or changed', async (t) => {
    await stack.request({
      method: 'PATCH',
      url: `/v1/jobs/${id}`,
      payload: { resources: { ranks: { max: 3 } } },
    });
    await open(`#/runs/${id}?tab=document`);
    const resolved = page.locator('[aria-label="As it was resolved"]');
    await resolved.locator('ins:has-text("micro_batch_size")').waitFor();
    t.match(await resolved.locator('del').allTextContents(), [/^− +max: 4/]);
    t.notMatch(await page.textContent('[aria-label="As it was given"]'), /micro_batch_size/);
    t.same(await axeFindings(page), []);
    t.notOk(await isTooWide(page, 390));
    await refuse(page, '**/document', 404, 'job_not_found');
    await open(`#/runs/${id}?tab=document`);
    await page.waitForSelector('.notice:has-text("job_not_found")');
    t.match(await page.textContent('pre'), /micro_batch_size/, 'the resolved one is still there');
    t.match(complaints.splice(0), [/404/]);
  });
});

t.test('every page of the list that was loaded is read again', { skip }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { page, open } = await openConsole(t, stack, await stack.listen());
  const first = await stack.createJob({ name: 'first' });
  for (let index = 0; index < 50; index += 1) await stack.createJob({ name: `run ${index}` });
  await open('#/runs?columns=ranks');
  await page.click('text=Load older runs');
  const row = page.locator('tr:has(a.name:text-is("first"))');
  await row.waitFor();
  await row.getByRole('checkbox').check();
  await page.click('th:has-text("Ranks") button');
  // The click was at the top of the page, far from the row.
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
  await claimAndTrain(stack.store, first.id, { steps: 3 });
  await row.locator('.badge:has-text("running")').waitFor({ timeout: 120_000 });
  t.ok(await row.getByRole('checkbox').isChecked(), 'what was chosen stays');
  t.equal(await page.getAttribute('th:has-text("Ranks")', 'aria-sort'), 'descending');
  t.equal(await page.locator('a.name').count(), 51);
  await stack.createJob({ name: 'newest' });
  await page.waitForSelector('a.name:text-is("newest")', { timeout: 120_000 });
  await row.waitFor();
});
