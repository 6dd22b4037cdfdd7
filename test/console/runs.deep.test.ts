import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { startTestStack } from '../../api/testing/stack.js';
import { checkpointOf, claimAndTrain, metricOf, progressOf } from '../../api/testing/training.js';
import { until } from '../../platform/testing/waiting.js';
import { axeFindings, cuttable, openConsole, startConsole, untilCount } from './console.js';

const skip = await ensureBrowser();
const NAME = '<img src=x onerror=alert(1)>';

t.test('a list of hundreds of runs', { skip }, async (t) => {
  const { page, complaints, stack, open } = await startConsole(t);
  const runs = 320;
  for (let run = 1; run <= runs; run += 1) await stack.createJob({ name: `run ${run}` });
  await open('#/runs');
  await page.waitForSelector('table.runs');
  const rows = page.locator('tr[aria-rowindex]');
  while ((await page.locator('text=Load older runs').count()) > 0) {
    const shown = Number(await page.getAttribute('table.runs', 'aria-rowcount'));
    await page.click('text=Load older runs');
    await page.waitForSelector(`table.runs[aria-rowcount="${Math.min(shown + 50, runs + 1)}"]`);
  }

  await t.test('has rows near the window alone, and the others when they come near', async (t) => {
    await page.waitForSelector('tr[aria-rowindex]:has-text("run 1"):last-child');
    await until(async () => (await rows.count()) < 200);
    const height = () => page.evaluate<number>('document.documentElement.scrollHeight');
    const before = await height();
    await page.evaluate('scrollTo(0, 0)');
    await page.waitForSelector('a.name:text-is("run 320")');
    await until(async () => (await page.locator('a.name:text-is("run 1")').count()) === 0);
    t.equal(await height(), before, 'nothing moves');
    t.equal(await page.locator('tr[aria-rowindex="2"] a.name').textContent(), 'run 320');
    t.same(await axeFindings(page), []);
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  await t.test('the focus stays in a row that is far', async (t) => {
    const compared = () => page.evaluate<string>('document.activeElement.ariaLabel');
    await page.focus('[aria-label="Compare run 319"]');
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    await page.waitForSelector('a.name:text-is("run 1")');
    t.equal(await compared(), 'Compare run 319');
    await page.keyboard.press('Space');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    t.equal(await compared(), 'Compare run 318');
    t.ok(await page.isChecked('[aria-label="Compare run 319"]'));
  });

  t.same(complaints, []);
});

t.test('the list of runs', { skip }, async (t) => {
  const { page, complaints, stack, open } = await startConsole(t);
  await open('');
  await page.waitForSelector('text=No run yet.');
  const jobs = [await stack.createJob({ name: NAME, labels: { team: 'alpha' } })];
  for (const name of ['one', 'two', 'three']) jobs.push(await stack.createJob({ name }));
  await claimAndTrain(stack.store, jobs[1]?.id ?? '', { steps: 3, finish: true });
  const names = () => page.locator('table.runs a.name').allTextContents();

  await t.test('shows names as plain text, the newest first', async (t) => {
    await open('#/runs');
    await page.waitForSelector('table.runs');
    t.same(await names(), ['three', 'two', 'one', NAME]);
    t.equal(await page.locator('table img').count(), 0);
    t.same(await axeFindings(page), []);
  });

  await t.test('filters by text, state and label, and keeps them in the address', async (t) => {
    await page.keyboard.press('/');
    await page.keyboard.type('tw');
    await untilCount(page, 'table.runs a.name', 1);
    t.same(await names(), ['two']);
    t.match(page.url(), /text=tw/);
    await page.reload();
    await page.waitForSelector('table.runs');
    t.same(await names(), ['two'], 'also when the page is loaded again');
    await page.fill('input[type=search]', '');
    await page.selectOption('select[aria-label=State]', 'succeeded');
    await untilCount(page, 'table.runs a.name', 1);
    t.same(await names(), ['one']);
    await page.selectOption('select[aria-label=State]', 'all');
    await page.fill('input[aria-label=Label]', 'team=alpha');
    // The list is read anew while the label is being written.
    await stack.createJob({ name: 'four' });
    await page.waitForSelector('table.runs a.name:text-is("four")');
    t.equal(await page.inputValue('input[aria-label=Label]'), 'team=alpha');
    await page.keyboard.press('Enter');
    await untilCount(page, 'table.runs a.name', 1);
    t.same(await names(), [NAME]);
    await page.fill('input[aria-label=Label]', 'team=beta');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=No run passes these filters.');
  });

  await t.test('its default columns tell runs apart', async (t) => {
    await open('#/runs');
    await page.waitForSelector('table.runs');
    const row = page.locator('tr:has(a.name:text-is("one"))');
    const heads = await page.locator('table.runs thead th').allTextContents();
    t.same(heads.slice(4, 9), ['Loss', 'Evaluation', 'Duration', 'Dataset', 'Model']);
    t.match(await row.textContent(), /3.1754.*test.*llama-tiny.*full/);
  });

  await t.test('shows columns that are chosen, and sorts by them', async (t) => {
    await open('#/runs');
    await page.click('text=Columns');
    await page.check('label:has-text("Rate")');
    await page.waitForSelector('th:has-text("Rate")');
    await page.click('th:has-text("Loss") button');
    t.equal((await names())[0], 'one', 'the only one with a loss');
    t.equal(await page.getAttribute('th:has-text("Loss")', 'aria-sort'), 'ascending', 'the best first');
  });

  await t.test('an address is a view: the link has filters, columns and the order', async (t) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.click('text=Copy the link');
    await page.waitForSelector('text=copied');
    const link = await page.evaluate<string>('navigator.clipboard.readText()');
    t.match(link, /sort=loss/);
    await page.evaluate('localStorage.clear()');
    await page.goto('about:blank');
    await page.goto(link);
    await page.waitForSelector('th:has-text("Rate")');
    t.equal(await page.getAttribute('th:has-text("Loss")', 'aria-sort'), 'ascending');
    t.equal((await names())[0], 'one');
  });

  await t.test('a menu closes on Escape, at a click elsewhere, and with another view', async (t) => {
    const menu = page.locator('.account .menu');
    const openMenu = async () => {
      await page.click('.account summary');
      await menu.waitFor();
    };
    await openMenu();
    await page.keyboard.press('Escape');
    await menu.waitFor({ state: 'hidden' });
    t.equal(await page.evaluate('document.activeElement.tagName'), 'SUMMARY');
    await openMenu();
    await page.click('h1');
    await menu.waitFor({ state: 'hidden' });
    await openMenu();
    await page.keyboard.press('Tab');
    await page.evaluate("location.hash = '#/fleet'");
    await page.waitForSelector('h1:text-is("Fleet")');
    await menu.waitFor({ state: 'hidden' });
    await page.evaluate("location.hash = '#/runs'");
    await page.waitForSelector('table.runs');
  });

  await t.test('is read again while it is open, and keeps the focus', async (t) => {
    await open('#/runs');
    await page.waitForSelector('table.runs');
    await page.focus('input[type=search]');
    await stack.createJob({ name: 'late' });
    await page.waitForSelector('table.runs a.name:has-text("late")', { timeout: 60_000 });
    t.equal(await page.evaluate('document.activeElement.type'), 'search');
  });

  t.same(complaints, []);
});

t.test('a server that goes away and comes back', { skip }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const way = await cuttable(t, await stack.listen());
  const { page, open } = await openConsole(t, stack, way.url);
  const { id } = await stack.createJob({ name: 'away' });
  const execution = await claimAndTrain(stack.store, id, { steps: 5 });
  await open(`#/runs/${id}`);
  await page.waitForSelector('.figures:has-text("5 / 10")');
  way.cut();
  await page.waitForSelector('[role=alert]:has-text("does not answer")', { timeout: 120_000 });
  t.ok(await page.locator('.figures:has-text("5 / 10")').isVisible(), 'what was read stays');
  await stack.store.report(id, execution, [metricOf(6)], progressOf(6, 10), { batch: 6 });
  way.mend();
  await page.waitForSelector('.figures:has-text("6 / 10")', { timeout: 120_000 });
  await untilCount(page, '[role=alert]', 0);
});

t.test('comparison', { skip }, async (t) => {
  const { page, complaints, stack, open } = await startConsole(t);
  const jobs = [await stack.createJob({ name: 'left' }), await stack.createJob({ name: 'right' })];
  for (const { id } of jobs) {
    const execution = await claimAndTrain(stack.store, id, { steps: 4 });
    await stack.store.commitCheckpoint(id, execution, {
      ...checkpointOf(id, 6),
      state_digest: id
        .slice(-32)
        .padStart(32, '0')
        .toLowerCase()
        .replace(/[^0-9a-f]/g, '0'),
    });
  }
  await open('#/runs');
  await page.check('input[aria-label="Compare left"]');
  await page.check('input[aria-label="Compare right"]');
  await page.click('text=Compare 2');
  await page.waitForSelector('text=Equal until step 4');
  t.match(await page.textContent('main'), /Different at step 6/);
  t.match(await page.textContent('main'), /\/data\/dataset/);
  await page.waitForSelector('[aria-label="loss by step"] canvas');
  await page.selectOption('select', 'lr');
  await page.waitForSelector('[aria-label="lr by step"] canvas');
  t.same(await axeFindings(page), []);
  t.same(complaints, []);
});

for (const width of [390, 1280, 2560]) {
  t.test(`nothing is wider than a page of ${width} pixels`, { skip }, async (t) => {
    const { page, stack, open } = await startConsole(t, { width, dark: width === 390 });
    const { id } = await stack.createJob({
      name: 'a run with a rather long name that says what it is about',
    });
    await claimAndTrain(stack.store, id, { steps: 5 });
    for (const hash of [
      '#/runs',
      `#/runs/${id}`,
      `#/runs/${id}?tab=charts`,
      `#/runs/${id}?tab=checkpoints`,
    ]) {
      await open(hash);
      await page.waitForSelector('.card');
      t.equal(await page.evaluate('document.documentElement.scrollWidth'), width, hash);
    }
  });
}
