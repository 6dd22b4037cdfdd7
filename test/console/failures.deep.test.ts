/** Views whose server refuses, goes away and comes back, or has nothing yet. */
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { startTestStack } from '../../api/testing/stack.js';
import { claimAndTrain } from '../../api/testing/training.js';
import { testWorker } from '../../state/testing/workers.js';
import {
  axeFindings,
  cuttable,
  isTooWide,
  openConsole,
  refuse,
  startConsole,
  untilCount,
} from './console.js';

const skip = await ensureBrowser();
const OFFLINE = '.notice:has-text("does not answer")';
const LONG = { timeout: 120_000 };

t.test('views without anything teach the next step', { skip }, async (t) => {
  const { page, complaints, open } = await startConsole(t);
  const views = [
    ['#/runs', 'No run yet.'],
    ['#/compare', 'Choose runs to compare.'],
    ['#/fleet', 'No workers yet.'],
    ['#/datasets', 'No dataset yet.'],
    ['#/models', 'No model yet.'],
    ['#/playground', 'No checkpoint or model yet.'],
  ] as const;
  for (const [hash, text] of views) {
    await open(hash);
    await page.waitForSelector(`text=${text}`);
    t.same(await axeFindings(page), [], hash);
    for (const width of [390, 1280, 2560]) t.notOk(await isTooWide(page, width), `${hash} fits in ${width}`);
  }
  t.same(complaints, []);
});

t.test('the playground', { skip }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const way = await cuttable(t, await stack.listen());
  const { page, open } = await openConsole(t, stack, way.url);
  const { id } = await stack.createJob({ name: 'asked' });
  await claimAndTrain(stack.store, id, { steps: 4, finish: true });
  const [checkpoint] = (await stack.store.listCheckpoints(id)).data;
  await open(`#/playground?model=${checkpoint?.id}`);
  const ask = async () => {
    await page.fill('textarea', 'a question');
    await page.keyboard.press('Control+Enter');
  };

  await t.test('a refusal is part of the answer, and the text to continue stays', async (t) => {
    const unrefuse = await refuse(page, '**/sample', 422, 'validation_failed');
    await ask();
    await page.waitForSelector('.side .notice:has-text("refused: validation_failed")');
    t.equal(await page.inputValue('textarea'), 'a question');
    t.ok(await page.isEnabled('button:has-text("Continue")'));
    t.same(await axeFindings(page), []);
    t.notOk(await isTooWide(page, 390));
    await unrefuse();
  });

  await t.test('a server that goes away is told, and asked again when it is back', async (t) => {
    way.cut();
    await ask();
    await page.waitForSelector(`.side ${OFFLINE}`, LONG);
    t.equal(await page.inputValue('textarea'), 'a question');
    way.mend();
    await ask();
    await page.waitForSelector('.side .notice:has-text("checkpoint_not_found")', LONG);
  });
});

t.test('datasets and models', { skip }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const way = await cuttable(t, await stack.listen());
  const { page, open } = await openConsole(t, stack, way.url);
  const upload = () =>
    page.setInputFiles('input[type=file]', [
      { name: 'book.txt', mimeType: '', buffer: Buffer.from('a text '.repeat(500)) },
    ]);

  for (const [kind, empty] of [
    ['datasets', 'No dataset yet.'],
    ['models', 'No model yet.'],
  ] as const)
    await t.test(`a list of ${kind} that is refused says so`, async (t) => {
      const unrefuse = await refuse(page, `**/v1/${kind}?*`, 403, 'missing_scope');
      await open(`#/${kind}`);
      await page.waitForSelector('.notice:has-text("refused: missing_scope")');
      t.equal(await page.locator(`text=${empty}`).count(), 0, 'it does not say that there is none');
      t.same(await axeFindings(page), []);
      await unrefuse();
    });

  await t.test('an upload to a server that is away leaves its error until it is read', async (t) => {
    await open('#/datasets');
    await page.waitForSelector('text=No dataset yet.');
    way.cut();
    await upload();
    await page.waitForSelector(OFFLINE, LONG);
    way.mend();
    t.equal(await page.locator(OFFLINE).count(), 1);
    await page.click('text=Dismiss');
    await upload();
    await page.waitForSelector('a.name:has-text("book.txt")', LONG);
    await untilCount(page, '.notice', 0);
  });
});

t.test('the fleet of a server that goes away and comes back', { skip }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const way = await cuttable(t, await stack.listen());
  const { page, open } = await openConsole(t, stack, way.url);
  await stack.store.announceWorker(testWorker('a', 2, { pool: 'default' }), 600_000);
  await open('#/fleet');
  await page.waitForSelector('[aria-label="Worker a"]');
  way.cut();
  await page.waitForSelector(OFFLINE, LONG);
  t.ok(await page.isVisible('[aria-label="Worker a"]'), 'what was read stays');
  t.same(await axeFindings(page), []);
  await stack.store.announceWorker(testWorker('b', 1, { pool: 'default' }), 600_000);
  way.mend();
  await page.waitForSelector('[aria-label="Worker b"]', LONG);
  t.equal(await page.locator(OFFLINE).count(), 0);
});
