/** Sweeps in the console: begun in a dialog, watched, and compared. */
import t from 'tap';
import { runSweeps } from '../../api/sweeps/runner.js';
import { ensureBrowser } from '../../api/testing/browser.js';
import { startTestStack } from '../../api/testing/stack.js';
import { halvingSweep, jobsOf, trainForSweep } from '../../api/testing/sweeps.js';
import type { Sweep } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { until } from '../../platform/testing/waiting.js';
import { looksWell, openConsole } from './console.js';

t.test('sweeps in a browser', { skip: await ensureBrowser() }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const runner = runSweeps({ ...stack, log: createLogger({ level: 'silent', name: 'sweeps' }) }, 20);
  t.teardown(() => runner.close());
  const { page, open, complaints } = await openConsole(t, stack, await stack.listen());
  const { id: dataset } = await stack.upload('to be or not to be, that is the question. '.repeat(400));
  const made = await stack.request({ method: 'POST', url: '/v1/sweeps', payload: halvingSweep(dataset) });
  const { id } = made.json<Sweep>();

  await t.test('a sweep shows its runs, and the best one once it has ended', async (t) => {
    await open('#/sweeps');
    await page.click('a.name:text-is("halving")');
    await page.waitForSelector('h1:text-is("halving")');
    await page.click('text=Pause');
    await page.waitForSelector('.title .badge:text-is("paused")');
    await page.click('text=Resume');
    await until(async () => {
      const sweep = (await stack.request({ url: `/v1/sweeps/${id}` })).json<Sweep>();
      for (const job of await jobsOf(stack, sweep))
        if (job?.state === 'queued') await trainForSweep(stack, job.id);
      return sweep.ended_at !== null;
    });
    await page.waitForSelector('.title .badge:text-is("succeeded")');
    await page.waitForSelector('h2:text-is("Best run")');
    const first = page.locator('h2:text-is("Runs") ~ table tbody tr').first();
    t.match(await first.textContent(), /halving lr=0.001 best0.001succeeded80\.1260/);
    t.equal(await page.locator('svg.parallel polyline').count(), 4);
    await page.waitForSelector('a:text-is("Train this further")');
    await looksWell(t, page);
  });

  await t.test('its runs are compared: results first, then what differs', async (t) => {
    await page.click('text=Compare the runs');
    await page.waitForSelector('h2:text-is("Results")');
    const titles = await page.locator('h2').allTextContents();
    t.same(titles, ['Results', 'Settings and result', 'Curves', 'Digests', 'Documents']);
    const best = page.locator('h2:text-is("Results") ~ table tbody tr:has(strong)').first();
    t.match(await best.textContent(), /lr=0.001/);
    t.match(await page.locator('h2:text-is("Documents") ~ table').textContent(), /optimizer\/lr0\.0010\.002/);
    await looksWell(t, page);
  });

  // The refusal below is a complaint of the browser, too.
  t.same(complaints, []);

  await t.test('a new one is begun over the document of a new run', async (t) => {
    await open(`#/new?dataset=${dataset}`);
    await page.click('button:text-is("Sweep")');
    await page.fill('dialog textarea', 'train.optimizer.lrr = 1e-4, 3e-4');
    await page.click('dialog button:text-is("Begin the sweep")');
    await page.waitForSelector('dialog .errors:has-text("no such field"), dialog .notice:has-text("lrr")');
    await page.fill('dialog textarea', 'nothing');
    await page.click('dialog button:text-is("Begin the sweep")');
    const objection = await page
      .locator('dialog textarea')
      .evaluate((field) => Reflect.get(field, 'validationMessage'));
    t.match(objection, /names no values/);
    await page.selectOption('dialog select', 'successive_halving');
    await looksWell(t, page);
  });
});
