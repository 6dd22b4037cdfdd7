/** Charts of a run: values under the pointer, zoom, smoothing, the logarithm, axes, bytes, and what a run may have. */
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { claimAndTrain, metricOf, progressOf } from '../../api/testing/training.js';
import { until } from '../../platform/testing/waiting.js';
import { axeFindings, startConsole } from './console.js';

/** Values in the legend; a curve before smoothing has none. */
const VALUE = '.u-series:not(.raw) .u-value';

t.test('charts in a browser', { skip: await ensureBrowser() }, async (t) => {
  const { page, complaints, stack, open } = await startConsole(t);
  const { id } = await stack.createJob({ train: { steps: 40 } });
  const execution = await claimAndTrain(stack.store, id, { steps: 30 });
  await open(`#/runs/${id}?tab=charts`);
  const chart = page.locator('.chart').first();
  await chart.locator('canvas').waitFor();
  const box = (await chart.locator('.u-over').boundingBox())!;
  const at = (share: number) => [box.x + share * box.width, box.y + box.height / 2] as const;
  const values = async () => (await chart.locator(VALUE).allTextContents()).map(Number);
  /** Waits until the values under the pointer are those of such a step. */
  const untilStep = async (share: number, is: (step: number) => boolean) => {
    await until(async () => {
      await page.mouse.move(...at(share === 0 ? 0.01 : share));
      await page.mouse.move(...at(share));
      return is((await values())[0] ?? Number.NaN);
    });
    return (await values())[1] ?? Number.NaN;
  };

  await t.test('values of the step under the pointer', async (t) => {
    t.equal(await untilStep(0, (step) => step === 1), 5.5);
    t.ok((await untilStep(0.999, (step) => step === 30)) < 1.1);
  });

  await t.test('smoothing changes the values, the logarithm does not', async (t) => {
    const sharp = await untilStep(0.999, (step) => step === 30);
    await page.fill('input[type=range]', '0.9');
    await until(async () => (await untilStep(0.999, (step) => step === 30)) > sharp * 1.1);
    await page.fill('input[type=range]', '0');
    await page.check('label:has-text("Logarithmic") input');
    await until(async () => (await untilStep(0.999, (step) => step === 30)) === sharp);
    await page.uncheck('label:has-text("Logarithmic") input');
    t.pass();
  });

  await t.test('dragging zooms, a double click shows all', async (t) => {
    await untilStep(0, (step) => step === 1);
    await page.mouse.move(...at(0.5));
    await page.mouse.down();
    await page.mouse.move(...at(0.7));
    await page.mouse.move(...at(0.8));
    await page.mouse.up();
    await untilStep(0, (step) => step > 10);
    await page.mouse.dblclick(...at(0.5));
    t.equal(await untilStep(0, (step) => step === 1), 5.5);
  });

  await t.test('one crosshair goes through all charts', async (t) => {
    const other = page.locator('section.card:has(h2:text-is("Tokens per second"))');
    await until(async () => {
      await untilStep(0.5, () => true);
      const here = (await values())[0];
      return here !== undefined && (await other.locator(VALUE).first().textContent()) === String(here);
    });
    t.pass();
  });

  await t.test('the axis is steps, tokens or time', async (t) => {
    const last = async () => {
      await page.mouse.move(...at(0.9));
      await page.mouse.move(...at(0.999));
      return chart.locator(VALUE).first().textContent();
    };
    await page.selectOption('label:has-text("By") select', 'tokens');
    await page.waitForSelector('.chart[aria-label="Loss by tokens"] canvas');
    await until(async () => (await last()) === '61.4K');
    await page.selectOption('label:has-text("By") select', 'time');
    await page.waitForSelector('.chart[aria-label="Loss by time"] canvas');
    await until(async () => / s$/.test((await last()) ?? ''));
    await page.selectOption('label:has-text("By") select', 'step');
    await page.waitForSelector('.chart[aria-label="Loss by step"] canvas');
    t.pass();
  });

  await t.test('memory is shown in bytes', async (t) => {
    const memory = page.locator('section.card:has(h2:text-is("Memory"))');
    await memory.locator('canvas').waitFor();
    await memory.locator('.chart').scrollIntoViewIfNeeded();
    const { x, y, width, height } = (await memory.locator('.u-over').boundingBox())!;
    await until(async () => {
      await page.mouse.move(x + width / 3, y + height / 2);
      await page.mouse.move(x + width / 2, y + height / 2);
      return (await memory.locator(VALUE).last().textContent()) === '400 MB';
    });
    t.pass();
  });

  await t.test('what only some runs have gets its charts when it is there', async (t) => {
    const titles = () => page.locator('section.card h2').allTextContents();
    const rare = [
      'Margin',
      'Accuracy',
      'Rewards',
      'Log-probabilities',
      'Skipped steps',
      'Busy cores by rank',
      'Busy GPU by rank',
    ];
    for (const title of rare) t.notOk((await titles()).includes(title), title);
    const preference = {
      ...{ reward_chosen: 0.5, reward_rejected: -0.5, margin: 1, accuracy: 0.75 },
      ...{ log_prob_chosen: -40, log_prob_rejected: -50 },
    };
    const system = { cpu: [1.5, 0.5], gpu: [0.9, 0.8], memory_bytes: [4e8, 3e8], sent_bytes: [2e6, 1e6] };
    const metric = { ...metricOf(31), skipped_steps: 1, preference, system };
    await stack.store.report(id, execution, [metric], progressOf(31, 40), { batch: 31 });
    for (const title of [...rare, 'Memory by rank', 'Sent by rank, per second'])
      await page.locator(`section.card:has(h2:text-is("${title}")) canvas`).waitFor();
    const names = await page
      .locator('section.card:has(h2:text-is("Busy cores by rank")) .u-series th')
      .allTextContents();
    t.same(names, ['step', 'rank 0', 'rank 1']);
    t.same(await axeFindings(page), []);
  });

  t.same(complaints, []);
});
