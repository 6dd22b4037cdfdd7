/** The playground in the console, with a real worker. */
import t from 'tap';
import { ensureBrowser, openPage } from '../../api/testing/browser.js';
import { collect } from '../../clients/typescript/index.js';
import { startStack } from '../support/stack.js';
import { tinyJob } from '../support/zero-specs.js';
import { axeFindings, isTooWide, untilCount } from './console.js';

t.test('the playground in a browser', { skip: await ensureBrowser() }, async (t) => {
  const { client } = await startStack(t);
  const { id: dataset } = await client.datasets.create(
    'text',
    Buffer.from('The fleet answers. '.repeat(300)),
  );
  const { id } = await client.jobs.create(tinyJob({ name: 'one', dataset }));
  t.equal((await client.jobs.until(id, () => false)).state, 'succeeded');
  const [checkpoint] = await collect(client.jobs.checkpoints(id));
  const model = checkpoint?.id ?? '';
  const { page, complaints } = await openPage(t);
  const { baseUrl, apiKey } = client.options;
  await page.setExtraHTTPHeaders({ authorization: `Bearer ${apiKey}` });
  const ask = async (text: string) => {
    await page.fill('textarea', text);
    await page.keyboard.press('Control+Enter');
  };

  await t.test('a text goes on as the API answers it', async (t) => {
    await page.goto(`${baseUrl}/#/runs/${id}?tab=checkpoints`);
    await page.click('text=Try it');
    await page.waitForSelector('h1:has-text("Playground")');
    await ask('The fleet');
    await page.waitForSelector('text=finish: length', { timeout: 120_000 });
    const options = { max_tokens: 128, temperature: 1, top_p: 1, top_k: 0, seed: 1 };
    const { choices } = await client.samples.create(model, { prompt: 'The fleet', ...options });
    t.ok((await page.textContent('main'))?.includes(choices[0]?.text ?? 'none'));
    t.same(await axeFindings(page), []);
    for (const width of [390, 1280, 2560]) t.notOk(await isTooWide(page, width), String(width));
  });

  await t.test('two models answer side by side', async (t) => {
    await page.click('text=Compare with another');
    const other = page.locator('label:has-text("Model 2") input, input[aria-label="Model 2"]');
    await other.fill(model);
    await ask('The fleet');
    await untilCount(page, 'text=finish: length', 2);
    t.same(await axeFindings(page), []);
  });

  await t.test('a base without a template answers a chat by that of its tune', async (t) => {
    const turn = (role: string, content: string) => ({ role, content });
    const chat = { messages: [turn('user', 'Who answers?'), turn('assistant', 'The fleet.')] };
    const lines = `${JSON.stringify(chat)}\n`.repeat(200);
    const chats = await client.datasets.create('chats', Buffer.from(lines), 'jsonl');
    const tiny = tinyJob({ name: 'tune', dataset: chats.id });
    const tune = await client.jobs.create(tiny);
    t.equal((await client.jobs.until(tune.id, () => false)).state, 'succeeded');
    const [tuned] = await collect(client.jobs.checkpoints(tune.id));
    await page.goto('about:blank');
    await page.goto(`${baseUrl}/#/playground?model=${tuned?.id}`);
    await page.waitForSelector('button:text-is("New chat")');
    await page.click('text=Compare with another');
    await page.locator('label:has-text("Model 2") input').fill(model);
    await page.selectOption('[aria-label=Prompts]', 'Write a haiku about the sea.');
    await page.click('button:text-is("Keep this prompt")');
    await page.click('button:text-is("Send")');
    await untilCount(page, 'text=finish:', 2);
    t.equal(await page.locator('[aria-label="Model 2"] >> text=by that of the other model').count(), 1);
    t.equal(await page.locator('[aria-label="Model 1"] >> text=by that of the other model').count(), 0);
    const tops = await page.locator('.side, form.ask').evaluateAll((all) => all.map((one) => one.className));
    t.match(tops.at(-1), /ask/, 'the composer is below the answers');
    t.same(await axeFindings(page), []);
    for (const width of [390, 768, 1280]) t.notOk(await isTooWide(page, width), String(width));
  });

  t.same(complaints, []);

  await t.test('a model that does not exist', async () => {
    await page.goto('about:blank');
    await page.goto(`${baseUrl}/#/playground?model=ckpt_00000000000000000000000000`);
    await ask('x');
    await page.waitForSelector('[role=alert]:has-text("checkpoint_not_found")');
  });
});
