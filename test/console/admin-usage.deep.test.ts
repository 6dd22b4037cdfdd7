/** The administration in the console: usage with quotas, and the audit log. */
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { claimAndTrain } from '../../api/testing/training.js';
import type { Project } from '../../contracts/index.js';
import { axeFindings, errorAt, looksWell, startConsole, untilCount } from './console.js';

const skip = await ensureBrowser();

t.test('usage by day, and quotas', { skip }, async (t) => {
  const { page, complaints, stack, open } = await startConsole(t);
  const used = (label: string) => page.textContent(`[aria-label="${label}"]`);

  await t.test('without use', async (t) => {
    await open('#/admin?tab=usage');
    await page.waitForSelector('text=Nothing was used in these days.');
    await looksWell(t, page);
  });

  await t.test('a day with its bars and totals, in the period of the address', async (t) => {
    const { id } = await stack.createJob();
    await claimAndTrain(stack.store, id, { steps: 3, finish: true });
    await stack.createJob();
    await page.selectOption('main select', '365');
    await page.waitForSelector('[aria-label=Days]');
    t.match(page.url(), /days=365/);
    await page.reload();
    await page.waitForSelector('[aria-label=Days]');
    t.equal(await page.locator('svg[aria-label="Tokens by day"] rect').count(), 365);
    await page.selectOption('main select', '7');
    await untilCount(page, 'svg[aria-label="Tokens by day"] rect', 7);
    t.match(await used('Tokens'), /6,144/);
    t.match(await used('Runs created'), /2/);
    t.match(await page.locator('[aria-label=Days] tbody tr').allTextContents(), [
      /^20.*6,1442$/,
      /^All days.*6,1442$/,
    ]);
    t.match(await used('Quota'), /Unfinished runs1 \(no limit\).*datasets/);
    await looksWell(t, page);
  });

  await t.test('an operator sets the quota of a project', async (t) => {
    const project = async () => (await stack.request({ url: '/v1/projects/default' })).json<Project>().quota;
    const edit = () => page.click('[aria-label=Projects] tr:has-text("default") >> text=Change quota');
    await edit();
    t.same(await axeFindings(page), []);
    await page.fill('dialog [name=max_jobs]', '20');
    await page.fill('dialog [name=max_storage]', '0.5');
    await page.click('dialog button:has-text("Save")');
    await page.waitForSelector('[aria-label=Projects] td:has-text("1 of 20")');
    t.same(await project(), { max_jobs: 20, max_ranks: null, max_storage_bytes: 2 ** 29 });
    t.ok(await page.evaluate('document.activeElement.textContent === "Change quota"'), 'the focus returns');
    await edit();
    t.equal(await page.inputValue('dialog [name=max_storage]'), '0.5');
    await page.fill('dialog [name=max_jobs]', '99999999999999999999');
    await page.click('dialog button:has-text("Save")');
    await errorAt(page, 'Unfinished runs');
    await page.fill('dialog [name=max_jobs]', '');
    await page.click('dialog button:has-text("Save")');
    await page.waitForSelector('[aria-label=Projects] td:has-text("1 (no limit)")');
    t.same(await project(), { max_jobs: null, max_ranks: null, max_storage_bytes: 2 ** 29 });
    t.match(complaints.splice(0), [/422/]);
  });

  t.same(complaints, []);
});

t.test('the audit log', { skip }, async (t) => {
  const { page, complaints, stack, open } = await startConsole(t);
  const rows = '[aria-label="Audit log"] tbody tr';

  await t.test('is empty at first', async (t) => {
    await open('#/admin?tab=audit');
    await page.waitForSelector('text=Nothing was changed yet.');
    await looksWell(t, page);
  });

  const job = await stack.createJob();
  const pause = { method: 'POST' as const, url: `/v1/jobs/${job.id}/pause`, payload: {} };
  const other = await stack.headersOf('jobs:read');
  await stack.request({ ...pause, headers: other });
  const missing = `job_${'0'.repeat(26)}`;
  for (let num = 0; num < 60; num += 1) await stack.request({ ...pause, url: `/v1/jobs/${missing}/pause` });

  await t.test('shows who did what, with which outcome, and leads to the run', async (t) => {
    await page.reload();
    await untilCount(page, rows, 50);
    t.match(
      await page.locator(rows).first().textContent(),
      /test.*pause job.*job_0{26}.*refused 404 job not found/,
    );
    await page.click('text=Load older entries');
    await untilCount(page, rows, 63);
    await looksWell(t, page);
    const created = page.locator(`${rows}:has-text("create job")`);
    t.match(await created.textContent(), /succeeded 201/);
    await created.locator(`a:has-text("${job.id}")`).click();
    await page.waitForSelector('[role=tab]:has-text("overview")');
    await page.goBack();
    await page.waitForSelector(rows);
  });

  await t.test('filters by operation, resource, key and time, in the address', async (t) => {
    await page.fill('label:has-text("Operation") input', 'pauseJob');
    await page.fill('label:has-text("Resource") input', job.id);
    await page.keyboard.press('Enter');
    await untilCount(page, rows, 1);
    t.match(await page.textContent(rows), /refused.*403 insufficient scope/);
    await page.reload();
    await untilCount(page, rows, 1);
    t.equal(await page.inputValue('label:has-text("Operation") input'), 'pauseJob');
    await page.click('text=All entries');
    await untilCount(page, rows, 50);
    t.equal(await page.inputValue('label:has-text("Operation") input'), '');
    await page.click(`${rows}:nth-child(1) a:has-text("test")`);
    await page.waitForURL(/principal_id=key_/);
    await page.fill('label:has-text("Until") input', '2020-01-01T00:00');
    await page.keyboard.press('Tab');
    await page.waitForSelector('text=No entry passes these filters.');
    t.match(page.url(), /until=2020/);
  });

  await t.test('what is typed stays while entries are read; a wrong filter is told', async (t) => {
    await page.click('text=All entries');
    await untilCount(page, rows, 50);
    const field = 'label:has-text("Operation") input';
    await page.focus(field);
    await page.keyboard.type('No Such');
    await page.evaluate(`[...document.querySelectorAll('button')].at(-1).click()`);
    await untilCount(page, rows, 63);
    t.equal(await page.inputValue(field), 'No Such');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.notice:has-text("operation")');
    t.match(complaints.splice(0), [/400/]);
  });

  t.same(complaints, []);
});
