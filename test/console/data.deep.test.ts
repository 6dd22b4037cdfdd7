import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { smallSpec, startTestStack } from '../../api/testing/stack.js';
import type { Dataset, Model } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { axeFindings, isTooWide, openConsole } from './console.js';

const MODEL = join(projectRoot(), 'test/e2e/hf-llama/model');
const file = (name: string, text: string) => ({ name, mimeType: '', buffer: Buffer.from(text) });

t.test('datasets and models in a browser', { skip: await ensureBrowser() }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { page, complaints, open } = await openConsole(t, stack, base);
  await open('#/datasets');
  const stored = async <T>(url: string) =>
    (await stack.request({ method: 'GET', url })).json<{ data: T[] }>().data;

  t.test('a dataset is uploaded, its beginning and its facts are shown', async (t) => {
    await page.waitForSelector('text=No dataset yet.');
    t.same(await axeFindings(page), []);
    const lines = '{"text":"<b>first</b>"}\n{"text":"second"}\n';
    await page.setInputFiles('input[type=file]', [
      file('chats.jsonl', lines),
      file('book.txt', 'a text '.repeat(500)),
    ]);
    await page.click('a.name:has-text("chats.jsonl")');
    await page.waitForSelector('h1:has-text("chats.jsonl")');
    t.match(await page.textContent('.preview'), /"text": "<b>first<\/b>".*"second"/s);
    t.match(await page.textContent('[aria-label=Properties]'), /jsonl.*Documents2/);
    await page.waitForSelector('[aria-label="Runs that use it"]:has-text("None.")');
    t.same(await axeFindings(page), []);
    t.notOk(await isTooWide(page, 390));
    const names = (await stored<Dataset>('/v1/datasets')).map(({ name }) => name);
    t.same(names, ['book.txt', 'chats.jsonl']);
  });

  t.test('the search finds a name', async (t) => {
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.waitForSelector('a.name:has-text("book.txt")');
    await page.keyboard.press('/');
    await page.keyboard.type('CHAT');
    await page.waitForSelector('a.name:has-text("book.txt")', { state: 'detached' });
    t.same(await page.locator('a.name').allTextContents(), ['chats.jsonl']);
    t.equal(await page.inputValue('input[type=search]'), 'CHAT');
    await page.fill('input[type=search]', '');
  });

  t.test('a refused file leaves nothing, and the refusal stays until it is read', async (t) => {
    await page.setInputFiles('input[type=file]', [file('bad.jsonl', 'no document\n')]);
    await page.waitForSelector('.notice:has-text("dataset_line_invalid")');
    t.equal((await stored<Dataset>('/v1/datasets')).length, 2);
    await page.click('text=Dismiss');
    t.equal(await page.locator('.notice').count(), 0);
    t.match(complaints.splice(0), [/422/]);
  });

  t.test('a dataset that a run uses is not deleted, another one is', async (t) => {
    const [book] = await stored<Dataset>('/v1/datasets');
    const payload = { ...smallSpec(book!.id), name: 'reader' };
    t.equal((await stack.request({ method: 'POST', url: '/v1/jobs', payload })).statusCode, 201);
    const remove = async (name: string) => {
      await page.click(`a.name:has-text("${name}")`);
      await page.click('button:has-text("Delete")');
      await page.waitForSelector(`text=Delete ${name} for good?`);
      await page.waitForSelector('.asking .danger:focus');
      await page.keyboard.press('Enter');
    };
    await remove('book.txt');
    await page.waitForSelector('.notice:has-text("dataset_in_use")');
    t.match(await page.textContent('[aria-label="Runs that use it"]'), /reader.*trains on it/);
    t.match(complaints.splice(0), [/409/]);
    await page.goBack();
    await remove('chats.jsonl');
    await page.waitForSelector('h1:has-text("Datasets")');
    t.same(
      (await stored<Dataset>('/v1/datasets')).map(({ name }) => name),
      ['book.txt'],
    );
  });

  t.test('a model is uploaded by its files, shown and deleted', async (t) => {
    await page.keyboard.press('g');
    await page.keyboard.press('m');
    await page.waitForSelector('text=No model yet.');
    const names = readdirSync(MODEL).sort();
    await page.setInputFiles(
      'input[type=file]',
      names.map((name) => join(MODEL, name)),
    );
    await page.click('a.name');
    await page.waitForSelector('[aria-label=Files]:has-text("config.json")');
    t.match(await page.textContent('[aria-label=Properties]'), /Kindllama/);
    t.same(await axeFindings(page), []);
    const [model] = await stored<Model>('/v1/models');
    t.same([...model!.files.map(({ name }) => name), ...model!.ignored_files].sort(), names);
    await page.click('button:has-text("Delete")');
    await page.click('.asking .danger');
    await page.waitForSelector('text=No model yet.');
    t.same(await stored('/v1/models'), []);
  });

  t.test('a broken archive is refused', async (t) => {
    await page.setInputFiles('input[type=file]', [file('broken.tar', 'no archive')]);
    await page.waitForSelector('.notice');
    t.same(await stored('/v1/models'), []);
    t.match(complaints.splice(0), [/4\d\d/]);
  });

  t.test('the browser reported no error', async (t) => t.same(complaints, []));
});
