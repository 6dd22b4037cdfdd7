/** Actions whose server refuses, or is away: the error stays until it is read, and nothing seems done. */
import type { Locator, Page, Route } from 'playwright-core';
import t, { type Test } from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import type { Scope } from '../../contracts/index.js';
import { type Action, setUpRecords, viewsOf } from './actions.js';
import { type ConsoleOptions, openConsole } from './console.js';

const LONG = { timeout: 120_000 };

const named = (owner: Locator, name: string) => owner.getByRole('button', { name, exact: true }).first();

/** The button outside of a dialog: that of the action, or the one that opens its dialog. */
const outside = (page: Page, { button, opens = button, within = 'main' }: Action) =>
  named(page.locator(within), opens);

const buttonOf = (page: Page, action: Action) =>
  action.opens === undefined ? outside(page, action) : named(page.locator('dialog'), action.button);

/** State of the page that a done action would change. */
const claims = async (page: Page) => ({
  address: page.url(),
  badges: await page.locator('main .badge').allTextContents(),
  rows: await page.locator('main tbody tr').count(),
  dialogs: await page.locator('dialog').count(),
  fields: await page
    .locator('dialog input[name]')
    .evaluateAll((fields) => fields.map((field) => Reflect.get(field, 'value'))),
});

/** Opens the dialog of an action, and fills its fields in. */
async function prepare(page: Page, action: Action): Promise<void> {
  const { opens, opened = 'dialog', fills = {} } = action;
  if (opens !== undefined) {
    await outside(page, action).click();
    await page.waitForSelector(opened);
  }
  for (const [field, value] of Object.entries(fills))
    if (field.startsWith('dialog')) await page.fill(field, value);
    else await page.selectOption(field, value);
}

/** Does an action whose request is not answered as usual. */
async function fails(
  t: Test,
  page: Page,
  action: Action,
  code: string,
  answer: (route: Route) => Promise<void>,
) {
  const [method, path] = action.sends;
  const before = await claims(page);
  await page.route(path, (route) => (route.request().method() === method ? answer(route) : route.fallback()));
  await buttonOf(page, action).click();
  if (action.asks) await page.click('.asking .danger');
  const notice = page.locator(`.notice:has-text("${code}")`);
  await notice.waitFor(LONG);
  await page.unroute(path);
  t.equal(await notice.count(), 1);
  t.strictSame(await claims(page), before, `${code}: nothing seems done`);
  await notice.getByRole('button', { name: 'Dismiss' }).click();
  t.equal(await notice.count(), 0);
}

t.test('actions', { skip: await ensureBrowser() }, async (t) => {
  const stack = await setUpRecords(t);
  const base = await stack.listen();
  const views = viewsOf(stack.ids);
  const openWith = (headers?: ConsoleOptions['headers']) => openConsole(t, stack, base, { headers });

  await t.test('that fail', async (t) => {
    const { page, complaints, open } = await openWith();
    const stranger = await stack.headersOf('jobs:read');
    const other = await stack.headersOf('models');
    const refused = (action: Action) => (route: Route) => {
      const { authorization } = action.scope === 'jobs:read' ? other : stranger;
      return route.continue({ headers: { ...route.request().headers(), authorization } });
    };
    for (const { address, loaded, actions } of views)
      for (const action of actions)
        await t.test(`${address} ${action.button}`, async (t) => {
          await open(address);
          await page.waitForSelector(loaded);
          await prepare(page, action);
          await fails(t, page, action, 'insufficient_scope', refused(action));
          await fails(t, page, action, 'offline', (route) => route.abort());
        });
    t.same(
      complaints.filter((text) => !/403|ERR_FAILED/.test(text)),
      [],
    );
  });

  await t.test('that a key may not do', async (t) => {
    for (const { address, loaded, reader, actions } of views) {
      const { page, open } = await openWith(await stack.headersOf(...reader));
      await open(address);
      if (!address.startsWith('#/new')) await page.waitForSelector(loaded);
      for (const action of actions) {
        const { scope, opensFor = scope, button } = action;
        const allows = (scope: Scope) => reader.includes(scope);
        if (allows(opensFor)) await outside(page, action).waitFor();
        t.equal((await outside(page, action).count()) > 0, allows(opensFor), `${address} ${button}`);
        if (!allows(opensFor) || action.opens === undefined) continue;
        await outside(page, action).click();
        await page.waitForSelector(action.opened ?? 'dialog');
        t.equal(
          (await buttonOf(page, action).count()) > 0,
          allows(scope),
          `${address} ${button} in its dialog`,
        );
        await page.keyboard.press('Escape');
      }
    }
  });

  await t.test('that are done', async (t) => {
    const { page, open } = await openWith();
    for (const { address, loaded, actions } of views)
      for (const action of actions.filter(({ done }) => done !== undefined)) {
        await open(address);
        await page.waitForSelector(loaded);
        await prepare(page, action);
        const [method, path] = action.sends;
        const answered = page.waitForResponse(
          (response) => response.request().method() === method && path.test(response.url()),
        );
        await buttonOf(page, action).click();
        t.ok((await answered).ok(), `${address} ${action.button}`);
        await page.waitForSelector(action.done ?? 'main');
      }
  });
});
