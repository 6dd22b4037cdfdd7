import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { checkpointOf, claimAndTrain, metricOf, progressOf } from '../../api/testing/training.js';
import { axeFindings, countRequests, openConsole, refuse, startConsole, untilCount } from './console.js';

const skip = await ensureBrowser();

t.test('one run, live', { skip }, async (t) => {
  const { page, complaints, stack, base, open } = await startConsole(t);
  const { id } = await stack.createJob({ name: 'live' });
  const execution = await claimAndTrain(stack.store, id, { steps: 5 });
  const report = (step: number) =>
    stack.store.report(id, execution, [metricOf(step)], progressOf(step, 10), { batch: step });

  await t.test('its figures and its curve follow the steps', async (t) => {
    await open(`#/runs/${id}`);
    await page.waitForSelector('.figures:has-text("5 / 10")');
    await report(6);
    await page.waitForSelector('.figures:has-text("6 / 10")');
    await page.waitForSelector('.chart[aria-label$="at step 6"] canvas');
    t.ok(await page.locator('.live').isVisible());
    t.same(await axeFindings(page), []);
  });

  await t.test('takes at most a request in ten seconds beside its stream, and keeps the focus', async (t) => {
    await page.focus('text=Cancel');
    const requests = countRequests(page);
    const began = Date.now();
    for (let second = 0; second < 60; second += 1) {
      await report(7);
      await sleep(1_000);
    }
    const allowed = Math.ceil((Date.now() - began) / 10_000);
    t.ok(requests.length <= allowed, `${requests.join()} of ${allowed}`);
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Cancel');
  });

  await t.test('tabs: charts, checkpoints, events, logs, document, attempts', async (t) => {
    await page.click('role=tab[name=charts]');
    await page.waitForSelector('.chart >> nth=3');
    t.same(await axeFindings(page), []);
    await page.click('role=tab[name=checkpoints]');
    await page.waitForSelector('table th:has-text("5")');
    await page.click('button:text-is("Pin")');
    await page.waitForSelector('text=Unpin', { timeout: 60_000 });
    t.same(await axeFindings(page), []);
    await page.click('role=tab[name=events]');
    await page.waitForSelector(
      '.events li:has-text("queued → provisioning"), .events li:has-text("job.created")',
    );
    t.same(await axeFindings(page), []);
    const line = {
      rank: 1,
      at: new Date().toISOString(),
      stream: 'stdout',
      message: '<b>of rank 1</b>',
      truncated: false,
      dropped: 0,
    } as const;
    await page.click('role=tab[name=logs]');
    await stack.store.appendLogs(id, execution, [line, { ...line, rank: 0, message: 'of rank 0' }]);
    await page.waitForSelector('.log li:has-text("of rank 0")');
    await page.selectOption('select[aria-label=Rank]', '1');
    await untilCount(page, '.log li', 1);
    t.match(await page.textContent('.log li'), '<b>of rank 1</b>');
    await page.fill('input[aria-label="Search in the lines"]', 'nothing like it');
    await untilCount(page, '.log li', 0);
    t.same(await axeFindings(page), []);
    await page.click('role=tab[name=document]');
    await page.waitForSelector('pre:has-text("micro_batch_size")');
    t.same(await axeFindings(page), []);
    await page.click('role=tab[name=attempts]');
    await page.waitForSelector('td:has-text("test-worker")');
    t.same(await axeFindings(page), []);
  });

  await t.test('its buttons control the run; cancelling asks once', async (t) => {
    await open(`#/runs/${id}`);
    await page.click('text=Pause');
    await page.waitForSelector('.badge:has-text("pausing")');
    await stack.store.releaseAttempt(id, execution, { to: 'paused' });
    await page.waitForSelector('.badge:has-text("paused")');
    await page.selectOption('select[aria-label=Ranks]', '3');
    await page.click('text=Resume');
    await page.waitForSelector('.badge:has-text("queued")');
    t.equal((await stack.store.getJob(id))?.requested_ranks, 3);
    await page.click('button:has-text("Cancel")');
    await page.click('text=Keep');
    t.equal((await stack.store.getJob(id))?.state, 'queued');
    await page.click('button:has-text("Cancel")');
    await page.click('.asking button.danger');
    await page.waitForSelector('.badge:has-text("cancelled")');
    await page.waitForSelector('.live', { state: 'detached' });
  });

  await t.test('at its end everything is read, before it no longer counts as live', async (t) => {
    const ending = await stack.createJob({ name: 'ending' });
    const holder = await claimAndTrain(stack.store, ending.id, { steps: 5 });
    await open(`#/runs/${ending.id}?tab=attempts`);
    await page.waitForSelector('.live');
    await page.waitForSelector('td:has-text("test-worker")');
    const last = progressOf(10, 10);
    const evaluations = { validation: { step: 10, loss: 2, best_step: 5, best_loss: 1.5 } };
    await stack.store.report(ending.id, holder, [metricOf(10)], { ...last, evaluations }, { batch: 6 });
    await stack.store.commitCheckpoint(ending.id, holder, checkpointOf(ending.id, 10));
    await stack.store.finishJob(ending.id, holder, 'succeeded', { reason: 'completed' });
    await page.waitForSelector('.live', { state: 'detached' });
    t.equal(await page.locator('.badge').first().textContent(), 'succeeded');
    t.match(await page.locator('main tbody tr').first().textContent(), /succeeded/, 'the attempt has ended');
    await page.click('role=tab[name=overview]');
    const figures = (await page.textContent('.figures')) ?? '';
    for (const figure of ['Step10 / 10', 'Best evaluation1.5000', 'Ranks– of', 'Time left–'])
      t.ok(figures.includes(figure), `${figure} in ${figures}`);
    await page.click('role=tab[name=checkpoints]');
    t.match(await page.locator('[aria-label=Checkpoints] tbody tr').first().textContent(), /^10\s*newest/);
  });

  await t.test('an error of an action stays until it is read', async (t) => {
    const other = await stack.createJob({ name: 'other' });
    await open(`#/runs/${other.id}`);
    const unrefuse = await refuse(page, '**/pause', 409, 'invalid_state');
    await page.click('button:has-text("Pause")');
    await page.waitForSelector('[role=alert]:has-text("refused: invalid_state")');
    await page.click('role=tab[name=events]');
    t.equal(await page.locator('[role=alert]:has-text("refused: invalid_state")').count(), 1);
    await page.click('text=Dismiss');
    await untilCount(page, '[role=alert]', 0);
    await unrefuse();
  });

  await t.test('a key that may only read is offered no action', async (t) => {
    const reading = await openConsole(t, stack, base, { headers: await stack.headersOf('jobs:read') });
    await reading.open(`#/runs/${id}`);
    await reading.page.waitForSelector('.badge');
    t.equal(await reading.page.locator('.head button').count(), 0);
  });

  await t.test('a run that does not exist', async () => {
    await open('#/runs/job_00000000000000000000000000');
    await page.waitForSelector('[role=alert]:has-text("job_not_found")');
  });

  t.same(
    complaints.filter((text) => !/40[49]/.test(text)),
    [],
  );
});
