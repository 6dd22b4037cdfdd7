/** Each view while the server goes away and comes back, and for a key that may not see it. A new view is a row. */
import type { Page } from 'playwright-core';
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { ADMIN_KEY } from '../../api/testing/stack.js';
import type { Scope } from '../../contracts/index.js';
import { testWorker } from '../../state/testing/workers.js';
import { setUpRecords } from './actions.js';
import { cuttable, openConsole } from './console.js';

const OFFLINE = '.notice:has-text("does not answer")';
const LONG = { timeout: 120_000 };

type Ids = Awaited<ReturnType<typeof setUpRecords>>['ids'];

interface View {
  address: string;
  /** Selector of an element made of the data that the server sends. */
  shows: string;
  /** It reads again by itself, and so finds out that the server is away. */
  isLive: boolean;
  /** The scope of a key that may not see it. */
  without: Scope;
}

const live = (address: string, shows: string, without: Scope = 'datasets'): View => ({
  address,
  shows,
  isLive: true,
  without,
});
const still = (address: string, shows: string, without?: Scope): View => ({
  ...live(address, shows, without),
  isLive: false,
});

const viewsOf = ({ running, paused, dataset, model, webhook }: Ids): readonly View[] => [
  live('#/runs', 'a.name:text-is("running")'),
  live(`#/runs/${running}`, '.badge:text-is("running")'),
  live(`#/runs/${running}?tab=charts`, '.uplot'),
  live(`#/runs/${running}?tab=checkpoints`, '[aria-label=Checkpoints] tbody tr'),
  live(`#/runs/${running}?tab=events`, '.events li'),
  live(`#/runs/${running}?tab=logs`, '.log:has-text("a line")'),
  live(`#/runs/${running}?tab=document`, 'pre:has-text("global_batch_size")'),
  live(`#/runs/${running}?tab=attempts`, 'main tbody tr'),
  still(`#/compare?run=${running}&run=${paused}`, 'main table'),
  still('#/sweeps', '.empty:has-text("No sweep yet")'),
  live('#/fleet', '[aria-label="Worker a"]'),
  still('#/datasets', 'a.name', 'models'),
  still(`#/datasets/${dataset}`, '[aria-label=Properties]', 'models'),
  still('#/models', 'a.name', 'jobs:read'),
  still(`#/models/${model}`, '[aria-label=Properties]', 'jobs:read'),
  still('#/playground', 'textarea'),
  still('#/new', 'select:has(option:has-text("random weights"))'),
  still('#/admin', '.api-keys tbody tr'),
  still('#/admin?tab=usage', 'text=default now'),
  still('#/admin?tab=audit', '[aria-label="Audit log"] tbody tr'),
  still('#/admin?tab=webhooks', '[aria-label=Webhooks] tbody tr'),
  live(`#/admin?tab=webhooks&webhook=${webhook}`, '[aria-label=Messages] tbody tr'),
  live('#/admin?tab=users', '[aria-label=Users] tbody tr'),
];

t.test('views', { skip: await ensureBrowser() }, async (t) => {
  const stack = await setUpRecords(t);
  const way = await cuttable(t, await stack.listen());
  const { page: first, base } = await openConsole(t, stack, way.url);
  await stack.store.announceWorker(testWorker('a', 2, { pool: 'default' }), 3_600_000);
  const views = viewsOf(stack.ids);
  /**
   * A page for each view: all of them see the same outage. Pages of one context would share its connections, which
   * streams hold.
   */
  const pages = new Map<View, Page>();
  const newPage = () =>
    first
      .context()
      .browser()!
      .newPage({ extraHTTPHeaders: { authorization: `Bearer ${ADMIN_KEY}` } });
  for (const view of views) pages.set(view, await newPage());
  const each = (does: (page: Page, view: View) => Promise<unknown>) =>
    Promise.all([...pages].map(([view, page]) => does(page, view)));

  await t.test('that are opened while it is away', async (t) => {
    for (const page of pages.values()) {
      await page.goto(`${base}/#/nowhere`);
      await page.waitForSelector('text=There is no such page.');
    }
    way.cut();
    await each(async (page, { address }) => {
      await page.evaluate(`location.hash = '${address}'`);
      await page.waitForSelector(OFFLINE, LONG);
      t.ok(await page.isVisible('nav'), address);
    });
    way.mend();
    await each(async (page, { address, shows }) => {
      await page.waitForSelector(shows, LONG);
      await page.waitForSelector(OFFLINE, { state: 'detached', ...LONG });
      t.ok(page.url().endsWith(address) || address === '#/playground', address);
    });
  });

  await t.test('that are open keep what they have read', async (t) => {
    way.cut();
    await each(async (page, { address, shows, isLive }) => {
      if (isLive) await page.waitForSelector(OFFLINE, LONG);
      t.ok(await page.isVisible(shows), address);
    });
    way.mend();
    await each(async (page, { address, shows }) => {
      await page.waitForSelector(OFFLINE, { state: 'detached', ...LONG });
      t.ok(await page.isVisible(shows), address);
    });
  });

  await t.test('that a key may not see say so', async (t) => {
    for (const { address, shows, without } of views) {
      const { page, open } = await openConsole(t, stack, base, { headers: await stack.headersOf(without) });
      await open(address);
      await page.waitForSelector('text=You may not open this page.', LONG);
      t.equal(await page.locator(shows).count(), 0, address);
      t.equal(await page.locator(`nav [aria-current=page]`).count(), 0, `${address} is not offered`);
      await page.close();
    }
  });
});

t.test('the first view is small', { skip: await ensureBrowser() }, async (t) => {
  const stack = await setUpRecords(t);
  const { page, open } = await openConsole(t, stack, await stack.listen());
  await open('#/runs');
  await page.waitForSelector('a.name:text-is("running")');
  const bytes = await page.evaluate<number>(`
    [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      .reduce((sum, { transferSize }) => sum + transferSize, 0)`);
  t.ok(bytes > 50_000 && bytes <= 120_000, `${bytes} bytes`);
});
