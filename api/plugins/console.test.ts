import type { Page } from 'playwright-core';
import t from 'tap';
import { noBrowser, openPage } from '../testing/browser.js';
import { ADMIN_KEY, smallSpec, startTestStack } from '../testing/stack.js';
import { claimAndTrain, metricOf, progressOf } from '../testing/training.js';

t.test('the dashboard in a browser', { skip: noBrowser, timeout: 120_000 }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { page, complaints } = await openPage(t);

  const dataset = await stack.upload('text '.repeat(100));
  const payload = { ...smallSpec(dataset.id), name: '<img src=x onerror=alert(1)>' };
  const job = (await stack.request({ method: 'POST', url: '/v1/jobs', payload })).json<{ id: string }>();
  const execution = await claimAndTrain(stack.store, job.id, { steps: 5 });

  t.test('a wrong key is refused, the right one opens the list', async (t) => {
    await page.goto(base);
    await enterKey(page, 'wrong');
    await page.waitForSelector('.notice.error');
    await enterKey(page, ADMIN_KEY);
    await page.waitForSelector('table.jobs');
    t.equal(await page.textContent('table.jobs a.name'), payload.name, 'a name is shown as plain text');
    t.equal(await page.locator('table img').count(), 0);
    complaints.length = 0;
  });

  t.test("a job's curve is drawn and updated live", async (t) => {
    await page.click('table.jobs a.name');
    await page.waitForSelector('path.curve');
    await page.waitForSelector('.figures:has-text("5 / 10")');
    await stack.store.report(job.id, execution, [metricOf(6)], progressOf(6, 10), { batch: 6 });
    await page.waitForSelector('.figures:has-text("6 / 10")');
    t.match(await page.getAttribute('.chart svg', 'aria-label'), /at step 6$/);
  });

  t.test('log lines are shown, of all ranks or of one', async (t) => {
    const line = (rank: number | null, message: string, stream: 'stdout' | 'worker' = 'stdout') => ({
      rank,
      at: new Date().toISOString(),
      stream,
      message,
      truncated: false,
      dropped: 0,
    });
    const lines = [line(null, 'of the job', 'worker'), line(0, '<b>of rank 0</b>'), line(1, 'of rank 1')];
    await stack.store.appendLogs(job.id, execution, lines);
    await page.waitForSelector('.log li:has-text("of rank 1")');
    t.match(await page.locator('.log li').allTextContents(), [
      /of the job/,
      /rank 0<b>of rank 0<\/b>/,
      /of rank 1/,
    ]);
    await page.selectOption('.log-head select', '1');
    t.equal(await page.locator('.log li').count(), 1);
  });

  t.test('its buttons control the job', async (t) => {
    await page.click('text=Pause');
    await page.waitForSelector('.badge.pausing');
    await stack.store.releaseAttempt(job.id, execution, { to: 'paused' });
    await page.waitForSelector('.badge.paused');
    await page.selectOption('.title select', '3');
    await page.click('text=Resume');
    await page.waitForSelector('.badge.queued');
    t.equal((await stack.store.getJob(job.id))?.requested_ranks, 3);
    await page.click('text=Cancel');
    await page.waitForSelector('.badge.cancelled');
    await page.waitForSelector('.live', { state: 'detached' });
    t.equal(await page.locator('.title button').count(), 0, 'no action is left');
  });

  t.test('the browser reported no error', async (t) => {
    t.same(complaints, []);
  });
});

async function enterKey(page: Page, key: string): Promise<void> {
  await page.fill('#key', key);
  await page.click('button.primary');
}
