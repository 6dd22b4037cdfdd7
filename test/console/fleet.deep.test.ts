import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { startTestStack } from '../../api/testing/stack.js';
import { claimAllocated } from '../../state/testing/pools.js';
import { testGpu, testWorker } from '../../state/testing/workers.js';
import { axeFindings, isTooWide, openConsole } from './console.js';

const LEASE_MS = 600_000;

t.test('the fleet in a browser', { skip: await ensureBrowser() }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { page, complaints, open } = await openConsole(t, stack, base);
  await open('#/fleet');

  t.test('without workers it says how to start one', async (t) => {
    await page.waitForSelector('text=No workers yet.');
    await page.waitForSelector('text=No run waits.');
    t.same(await axeFindings(page), []);
  });

  t.test('pools, workers, GPUs, machines and the queue', async (t) => {
    await stack.store.announceWorker(testWorker('a', 2, { pool: 'default' }), LEASE_MS);
    const gpus = [testGpu('GPU-1'), testGpu('GPU-2', { problem: 'memory errors' })];
    const bad = { gpus, draining: true, problem: 'a process cannot be killed' };
    await stack.store.announceWorker(testWorker('g', 1, { pool: 'other', ...bad }), LEASE_MS);
    await stack.store.noteMachines('other', {
      types: [{ type: 'g6', running: 1, starting: 0, requested: 2, terminating: 0 }],
      problems: [{ type: 'g6', code: 'quota', message: 'the limit is 0' }],
      pods: [
        {
          ...{ name: 'other-g6-1', type: 'g6', node: 'n1', phase: 'ended', reason: 'Error' },
          ...{ message: 'exit code 1', log: '<b>Redis</b> is away' },
        },
      ],
    });
    await claimAllocated(stack.store, await stack.createJob({ name: 'has slots' }));
    await stack.createJob({ name: '<b>waits</b>' });
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForSelector('h1:has-text("Runs")');
    await page.keyboard.press('g');
    await page.keyboard.press('f');
    const worker = page.locator('[aria-label="Worker a"]');
    await worker.waitFor();
    t.equal(await worker.locator('.slot.used').count(), 2);
    const drained = page.locator('[aria-label="Worker g"]');
    t.match(await drained.textContent(), /draining.*a process cannot be killed/s);
    t.match(await drained.textContent(), /2 × NVIDIA H100.*GPU-2.*memory errors/s);
    t.equal(await drained.locator('.slot.problem').count(), 1);
    t.match(await page.textContent('[aria-label="Pool other"]'), /No g6: quota. the limit is 0/);
    await page.click('[aria-label="Pool other"] tr:has-text("other-g6-1") summary:has-text("Error")');
    await page.waitForSelector('[aria-label="Pool other"] pre:has-text("<b>Redis</b> is away")');
    const row = page.locator('[aria-label=Queue] tr:has-text("<b>waits</b>")');
    t.match(await row.textContent(), /needs 1 slot, 0 are free/);
    t.equal(await row.locator('td').first().textContent(), '1');
    t.same(await axeFindings(page), []);
    for (const width of [390, 2560]) t.notOk(await isTooWide(page, width), `fits in ${width}`);
  });

  t.test('what cannot be read is told, and the last figures stay', async (t) => {
    await page.route('**/v1/workers', (route) =>
      route.fulfill({
        status: 403,
        contentType: 'application/problem+json',
        body: JSON.stringify({ title: 'no', status: 403, code: 'missing_scope', detail: 'not any more' }),
      }),
    );
    await page.waitForSelector('.notice:has-text("not any more")');
    t.equal(await page.locator('[aria-label="Worker a"]').count(), 1);
    t.match(complaints.splice(0), [/403/]);
  });

  t.test('a key without jobs:read is not offered it', async (t) => {
    const { authorization } = await stack.headersOf('datasets');
    await page.setExtraHTTPHeaders({ authorization });
    await page.reload();
    await page.waitForSelector('nav a');
    t.equal(await page.locator('nav a:has-text("Fleet")').count(), 0);
    complaints.length = 0;
  });

  t.test('the browser reported no error', async (t) => t.same(complaints, []));
});
