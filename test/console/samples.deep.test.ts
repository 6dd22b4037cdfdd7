/** Answers of checkpoints in the view of a run. */
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { answered } from '../../api/testing/training.js';
import { axeFindings, isTooWide, startConsole } from './console.js';

const skip = await ensureBrowser();

t.test('the answers of checkpoints stand side by side, the newest first', { skip }, async (t) => {
  const { page, stack, open } = await startConsole(t);
  const { id: plain } = await stack.createJob();
  await open(`#/runs/${plain}?tab=samples`);
  await page.waitForSelector('text=The document has no prompts.');
  const prompts = [{ prompt: 'Once' }, { prompt: 'Twice' }];
  const { id } = await stack.createJob({ checkpoint: { samples: { prompts } } });
  await open(`#/runs/${id}?tab=samples`);
  await page.waitForSelector('text=No checkpoint has answered yet.');
  await answered(stack, id);
  await page.waitForSelector('.samples >> text=two');
  t.same(await page.locator('.samples h2').allTextContents(), ['Once', 'Twice']);
  const texts = await page.locator('.samples').first().locator('li').allTextContents();
  t.same(texts, ['step 10too long', 'step 5one\nline']);
  t.same(await axeFindings(page), []);
  for (const width of [390, 768, 1280]) t.notOk(await isTooWide(page, width), `fits in ${width}`);
});
