/** Charts of a run: values under the pointer, zoom, smoothing, the logarithm, and bytes. */
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { claimAndTrain } from '../../api/testing/training.js';
import { until } from '../../platform/testing/waiting.js';
import { startConsole } from './console.js';

t.test('charts in a browser', { skip: await ensureBrowser() }, async (t) => {
  const { page, complaints, stack, open } = await startConsole(t);
  const { id } = await stack.createJob({ train: { steps: 40 } });
  await claimAndTrain(stack.store, id, { steps: 30 });
  await open(`#/runs/${id}?tab=charts`);
  const chart = page.locator('.chart').first();
  await chart.locator('canvas').waitFor();
  const box = (await chart.locator('.u-over').boundingBox())!;
  const at = (share: number) => [box.x + share * box.width, box.y + box.height / 2] as const;
  const values = async () => (await chart.locator('.u-value').allTextContents()).map(Number);
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

  await t.test('memory is shown in bytes', async (t) => {
    const memory = page.locator('section.card:has(h2:text-is("Memory"))');
    await memory.locator('canvas').waitFor();
    await memory.locator('.chart').scrollIntoViewIfNeeded();
    const { x, y, width, height } = (await memory.locator('.u-over').boundingBox())!;
    await until(async () => {
      await page.mouse.move(x + width / 3, y + height / 2);
      await page.mouse.move(x + width / 2, y + height / 2);
      return (await memory.locator('.u-value').last().textContent()) === '400 MB';
    });
    t.pass();
  });

  t.same(complaints, []);
});
