/** Narrow windows: what counts is in sight, and nothing is cut off. */
import type { Page } from 'playwright-core';
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { setUpRecords } from './actions.js';
import { axeFindings, openConsole } from './console.js';

const WIDTHS = [390, 768];

/** Texts of the visible elements that reach beyond the window. */
const outside = (page: Page, selector: string) =>
  page.evaluate<string[]>(`[...document.querySelectorAll(${JSON.stringify(selector)})].flatMap((element) => {
    const { left, right, width } = element.getBoundingClientRect();
    return width > 0 && (left < 0 || right > document.documentElement.clientWidth) ? [element.textContent] : [];
  })`);

/** Widths of the fields of the form. */
const widthsOf = (page: Page) =>
  page.evaluate<number[]>(
    "[...document.querySelectorAll('.fields > .field')].map((field) => field.getBoundingClientRect().width)",
  );

t.test('narrow windows', { skip: await ensureBrowser() }, async (t) => {
  const stack = await setUpRecords(t);
  const { ids } = stack;
  await stack.createJob({ name: 'a run with a rather long name that says what it is about' });
  const { page, open, complaints } = await openConsole(t, stack, await stack.listen());

  for (const width of WIDTHS) {
    await t.test(`${width} pixels`, async (t) => {
      await page.setViewportSize({ width, height: 900 });
      await open('#/runs');
      await page.waitForSelector('table.runs');
      const loss = page.locator('tr:has(a.name:text-is("running")) td:text-is("2.7500")').first();
      const { x, width: own } = (await loss.boundingBox())!;
      t.ok(x + own <= width, 'the loss is in sight');
      t.same(await outside(page, 'tbody :is(th, td), thead button'), [], 'each column is');

      for (const [address, rows] of [
        ['#/admin', '.api-keys tbody tr'],
        ['#/admin?tab=users', '[aria-label=Users] tbody tr'],
        [`#/runs/${ids.running}?tab=checkpoints`, '[aria-label=Checkpoints] tbody tr'],
        [`#/runs/${ids.running}?tab=attempts`, '[aria-label=Attempts] tbody tr'],
        [`#/compare?run=${ids.running}&run=${ids.paused}`, 'main .scroll tbody tr'],
        ['#/datasets', '.runs tbody tr'],
        ['#/admin?tab=audit', '[aria-label="Audit log"] tbody tr'],
      ] as const) {
        await open(address);
        await page.waitForSelector(rows);
        t.same(
          await outside(
            page,
            'tbody :is(th, td), .actions :is(button, a), .title :is(button, a), [role=tab]',
          ),
          [],
          address,
        );
        const head = await page.evaluate<string>(
          `getComputedStyle(document.querySelector(${JSON.stringify(`${rows} td`)}), '::before').content`,
        );
        t.match(head, /^"[A-Z][a-z]+"$/, 'a cell has the name of its column');
      }
      t.same(await axeFindings(page), []);
    });

    await t.test(`errors of a form in ${width} pixels`, async (t) => {
      await page.setViewportSize({ width, height: 900 });
      await open(`#/new?dataset=${ids.dataset}`);
      const field = (label: string) => page.locator(`.field:has(:text-is("${label}"))`).first();
      await field('Micro-batch size').locator('input').waitFor();
      const before = await widthsOf(page);
      await field('Micro-batch size').locator('input').fill('7');
      await field('Learning rate').locator('input').fill('99');
      await page.locator('.fields .errors li').first().waitFor();
      t.same(await widthsOf(page), before, 'no field is wider');
      t.same(await outside(page, '.errors'), []);
    });
  }

  t.same(
    complaints.filter((text) => !/422/.test(text)),
    [],
  );
});
