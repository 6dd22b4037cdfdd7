/**
 * Takes the pictures of README.md from a real stack: node compiled/test/docs/pictures.js (after npm run build). It
 * needs chromium.
 */
import { join } from 'node:path';
import t from 'tap';
import { openPage } from '../../api/testing/browser.js';
import { projectRoot } from '../../platform/process/root.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';

const STEPS = 400;
const NAMES = ['one rank', 'two ranks', 'three ranks'];
const FOLDER = join(projectRoot(), 'docs', 'images');
const VIEW = { width: 1200, height: 760 };

t.setTimeout(0);
t.test('pictures', { timeout: 0 }, async (t) => {
  const { client } = await startStack(t, { env: { ZEROFLEET_SLOTS: '3' } });
  const { id: dataset } = await client.datasets.create('openapi.yaml', sampleText());
  const runs: string[] = [];
  for (const [index, name] of NAMES.entries()) {
    const spec = smallJob({ name, dataset, steps: STEPS, ranks: index + 1, every_steps: 50 });
    const job = await client.jobs.create({
      ...spec,
      train: { ...spec.train, lr_schedule: { type: 'constant' } },
    });
    runs.push(job.id);
    const { state, failure } = await client.jobs.wait(job.id);
    t.equal(state, 'succeeded', JSON.stringify(failure));
  }

  const { baseUrl, apiKey } = client.options;
  const headers = { authorization: `Bearer ${apiKey}` };
  const { page } = await openPage(t, { viewport: VIEW, colorScheme: 'light', extraHTTPHeaders: headers });
  const take = async (name: string, hash: string, ready: string) => {
    await page.goto('about:blank');
    await page.goto(`${baseUrl}/${hash}`);
    await page.waitForSelector(ready);
    await page.evaluate('document.fonts.ready');
    await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  };
  await take('same-loss', `#/compare?${runs.map((id) => `run=${id}`).join('&')}`, 'canvas, svg');
  await take('console', `#/runs/${runs[1]}`, 'canvas, svg');
});
