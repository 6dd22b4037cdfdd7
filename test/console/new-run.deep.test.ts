/** The view that writes and starts a run. */
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { startTestStack } from '../../api/testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../api/testing/training.js';
import type { Job, Page as ListPage } from '../../contracts/index.js';
import { axeFindings, errorAt, isTooWide, openConsole, untilCount } from './console.js';

const PLAN = '[aria-labelledby=new-plan]';
const START = `${PLAN} button:has-text("Start the run"):not(:disabled)`;
const lines = (documents: object[]) => documents.map((document) => `${JSON.stringify(document)}\n`).join('');
const chat = (number: number) => ({
  messages: [
    { role: 'user', content: `What is <b>${number}</b>?` },
    { role: 'assistant', content: `A number, ${number}.` },
  ],
});

t.test('a new run in a browser', { skip: await ensureBrowser() }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { page, complaints, open } = await openConsole(t, stack, base);
  const file = (name: string, content: string) => ({ name, mimeType: '', buffer: Buffer.from(content) });
  const drop = (name: string, content: string) =>
    page.setInputFiles('input[type=file]', [file(name, content)]);
  const newest = async () => {
    const { data } = (await stack.request({ url: '/v1/jobs?limit=1' })).json<ListPage<Job>>();
    return data[0] as Job;
  };
  const started = async () => {
    await page.click(START);
    await page.waitForSelector('[role=tablist]');
    return newest();
  };

  await t.test('chats are dropped, read, and trained on with adapters', async (t) => {
    await open('#/new');
    await page.waitForSelector('text=Upload or choose data first.');
    t.same(await axeFindings(page), []);
    await drop('chats.jsonl', lines([1, 2, 3].map(chat)));
    await page.waitForSelector(START);
    t.equal(await page.locator('[role=alert], .errors').count(), 0, 'nothing is red');
    await page.waitForSelector(`${PLAN} .notice:has-text("ChatML")`);
    await page.waitForSelector('p:has-text("Read as chats: messages → turns.")');
    await page.click('summary:has-text("The first texts")');
    const learned = page.locator('.read mark');
    t.strictSame(
      await learned.allTextContents(),
      [1, 2, 3].map((number) => `A number, ${number}.<|im_end|>\n`),
    );
    t.match(await page.textContent('.read >> nth=0'), /What is <b>1<\/b>\?/);
    await page.getByLabel('Train', { exact: true }).selectOption('lora');
    await page.getByLabel('Rank', { exact: true }).fill('4');
    await page.getByLabel('Name of the run').fill('by hand');
    await page.getByLabel('Questions, one a line').fill('What is 7?\n\nWhat is 8?\n');
    await page.getByLabel('Tokens of an answer').fill('9');
    await page.waitForSelector(`${PLAN} :text("Memory of a rank")`);
    t.same(await axeFindings(page), []);
    for (const width of [390, 1280, 2560]) t.notOk(await isTooWide(page, width), String(width));
    const { name, spec } = await started();
    t.equal(name, 'by hand');
    t.match(spec, {
      model: { preset: 'llama-tiny' },
      data: { packing: 'whole', chat_template: /im_start/ },
      train: { epochs: 3, adapter: { type: 'lora', rank: 4 } },
      checkpoint: {
        samples: {
          max_tokens: 9,
          prompts: ['What is 7?', 'What is 8?'].map((content) => ({ messages: [{ role: 'user', content }] })),
        },
      },
    });
  });

  await t.test('errors stand at their fields, and a draft outlives the page', async (t) => {
    await open('#/new');
    await drop('book.txt', 'a text '.repeat(500));
    await page.waitForSelector(START);
    await page.getByLabel('Batch size', { exact: true }).fill('0');
    await page.getByLabel('Learning rate').fill('1e-');
    await errorAt(page, 'Batch size', '1');
    await errorAt(page, 'Learning rate', 'number');
    t.equal(await page.locator(START).count(), 0);
    t.same(await axeFindings(page), []);
    await open('#/new');
    await errorAt(page, 'Batch size', '1');
    t.equal(await page.getByLabel('Learning rate').inputValue(), '1e-');
    await page.getByLabel('Batch size', { exact: true }).fill('8');
    await page.getByLabel('Learning rate').fill('1e-4');
    await page.waitForSelector(START);
    await page.click('summary:has-text("Document")');
    const document = page.getByLabel('Document as JSON');
    const written = JSON.parse(await document.inputValue());
    t.match(written, { train: { global_batch_size: 8, optimizer: { lr: 1e-4 } } });
    await document.fill(JSON.stringify({ ...written, zero: { stagee: 1 } }));
    await page.waitForSelector(`${PLAN} .notice:has-text("/zero/stagee")`);
    await document.fill('{');
    await page.waitForSelector('.errors[role=alert]');
    await document.fill(JSON.stringify({ ...written, zero: { stage: 1 } }));
    t.match((await started()).spec, { zero: { stage: 1 }, train: { optimizer: { lr: 1e-4 } } });
    await open('#/new');
    await page.waitForSelector('text=Upload or choose data first.');
  });

  await t.test('preferences bring their objective', async () => {
    await drop('pairs.jsonl', lines([{ prompt: 'Two and two is', chosen: ' four.', rejected: ' five.' }]));
    await page.waitForSelector('select:has(option:text-is("dpo"):checked)');
    await page.waitForSelector('label:text-is("Beta")');
  });

  await t.test('an export with a file for TensorBoard, and trackers', async (t) => {
    const { id } = await stack.upload('a text '.repeat(500));
    await open(`#/new?dataset=${id}`);
    await page.waitForSelector(START);
    await page.getByLabel('Format', { exact: true }).selectOption('peft');
    await errorAt(page, 'Format', 'adapter');
    await page.getByLabel('Format', { exact: true }).selectOption('');
    await page.getByLabel('Dtype', { exact: true }).selectOption('fp32');
    await page.getByLabel('With a file of the metrics for TensorBoard').check();
    await page.click('text=Add a tracker');
    await errorAt(page, 'Experiment');
    await errorAt(page, 'Reached by', 'exactly one of server, url');
    await page.getByLabel('Configured server', { exact: true }).fill('absent');
    await page.getByLabel('Experiment', { exact: true }).fill('models');
    await errorAt(page, 'Configured server', 'has configured no servers');
    t.same(await axeFindings(page), []);
    for (const width of [390, 1280, 2560]) t.notOk(await isTooWide(page, width), String(width));
    await page.getByLabel('Reached by').selectOption('url');
    await page.getByLabel('URL', { exact: true }).fill('http://192.168.0.1:5000');
    await errorAt(page, 'URL');
    await page.getByLabel('URL', { exact: true }).fill('https://1.1.1.1/mlflow');
    await page.getByLabel('Run', { exact: true }).fill('<b>first</b>');
    await page.click('text=Add a tracker');
    await untilCount(page, 'fieldset:has(legend:text("Tracker"))', 2);
    await page.click('text=Remove >> nth=1');
    await page.waitForSelector('#new-integrations:focus');
    await page.waitForSelector(START);
    t.match((await started()).spec, {
      export: { dtype: 'fp32', tensorboard: true },
      integrations: [
        { type: 'mlflow', url: 'https://1.1.1.1/mlflow', experiment: 'models', run_name: '<b>first</b>' },
      ],
    });
  });

  const trained = async (name: string) => {
    const job = await stack.createJob({ name });
    const execution = await claimAndTrain(stack.store, job.id, { steps: 3 });
    const checkpoint = checkpointOf(job.id, 4);
    await stack.store.commitCheckpoint(job.id, execution, checkpoint);
    await stack.objects.put(`${checkpoint.prefix}/MANIFEST.json`, Buffer.from('{}'));
    return { job, checkpoint };
  };

  await t.test('a run goes on from a checkpoint, or fine-tunes its weights', async (t) => {
    const { job, checkpoint } = await trained('first');
    await open(`#/new?fork=${checkpoint.id}`);
    await page.waitForSelector(START);
    t.equal(await page.getByLabel('Name of the run').inputValue(), 'first-2');
    const { spec } = await started();
    t.match(spec.model.init_from, { checkpoint: checkpoint.id, restore: 'continue' });
    t.equal(spec.train.steps, 2 * Number(job.spec.train.steps));
    await open(`#/new?fork=${job.id}`);
    await page.getByLabel('Of the checkpoint').selectOption('weights');
    await page.waitForSelector(START);
    t.match((await started()).spec.model.init_from, { checkpoint: checkpoint.id, restore: 'weights' });
  });

  await t.test('a run begins with weights of my runs, or with a model by its name on the Hub', async (t) => {
    const { checkpoint } = await trained('mine');
    const { id } = await stack.upload('a text '.repeat(500));
    await open(`#/new?dataset=${id}`);
    const base = page.getByLabel('Begin with', { exact: true });
    await base.selectOption({ label: 'mine, step 4' });
    await page.waitForSelector(START);
    t.match((await started()).spec.model.init_from, { checkpoint: checkpoint.id, restore: 'weights' });
    await open(`#/new?dataset=${id}`);
    await base.selectOption({ label: 'a model by its name on the Hugging Face Hub …' });
    await page.getByLabel('Name', { exact: true }).fill('hf://owner/');
    await page.waitForSelector('.errors');
    await base.selectOption('llama-tiny');
    await page.waitForSelector(START);
  });

  await t.test('forms of public datasets, and files that are refused', async (t) => {
    await open('#/new');
    const cases: [string, string, string][] = [
      [
        'alpaca.json',
        JSON.stringify([{ instruction: 'Add.', input: '1, 2', output: '3', id: 1 }]),
        'Read as chats: instruction → user, input → user, output → assistant. Ignored: id.',
      ],
      [
        'sharegpt.jsonl',
        lines([
          {
            conversations: [
              { from: 'human', value: 'a' },
              { from: 'gpt', value: 'b' },
            ],
          },
        ]),
        'Read as chats: conversations → turns.',
      ],
      ['qa.csv', 'question,answer\nWhy?,Because\n', 'Read as chats: question → user, answer → assistant.'],
    ];
    for (const [name, content, text] of cases) {
      await drop(name, content);
      await page.waitForSelector(`select:has(option:checked:has-text("${name}"))`);
      await page.waitForSelector(`p:has-text("${text}")`);
      t.equal(await page.getByLabel('Name of the run').inputValue(), name.split('.')[0]);
      await page.waitForSelector(START);
      t.equal(await page.locator('[role=alert], .errors').count(), 0, name);
    }
    await drop('table.csv', 'title,body\nWhy?,Because\n');
    await page.waitForSelector('.notice:has-text("table.csv: line 1: none of the columns")');
    await page.waitForSelector('text=Upload or choose data first.');
    t.equal(await page.getByLabel('Dataset', { exact: true }).inputValue(), '');
    t.equal(await page.locator(START).count(), 0);
  });

  await t.test('a warning has a button that sets the value', async (t) => {
    await open('#/new');
    await drop('long.jsonl', lines([1, 2].map((number) => chat(10 ** 20 + number))));
    await page.waitForSelector(START);
    await page.getByLabel('Sequence length').fill('16');
    const warning = page.locator(`${PLAN} .notice:has-text("do not fit into a sequence")`);
    await warning.locator('button').click();
    await warning.waitFor({ state: 'detached' });
    const length = Number(await page.getByLabel('Sequence length').inputValue());
    t.ok(length > 16 && length % 8 === 0, String(length));
    await page.waitForSelector(START);
    t.equal((await started()).spec.train.sequence_length, length);
  });

  await t.test('too many ranks: the error says what to use, and the form has the fields', async () => {
    const { id } = await stack.upload('a text '.repeat(500));
    await open(`#/new?dataset=${id}`);
    await page.getByLabel('Batch size', { exact: true }).fill('8');
    await page.getByLabel('Micro-batch size').fill('4');
    await page.getByLabel('At most').fill('3');
    await errorAt(page, 'At most', 'at most 2 ranks work; for 3 use a global_batch_size of 12');
    await page.getByLabel('Batch size', { exact: true }).fill('12');
    await page.waitForSelector(START);
  });

  await t.test('a start that the server refuses keeps the draft', async (t) => {
    const { id } = await stack.upload('a text '.repeat(500));
    await open(`#/new?dataset=${id}`);
    await page.waitForSelector(START);
    const before = await newest();
    await page.route('**/v1/jobs', (route) => route.abort());
    await page.click(START);
    await page.waitForSelector('.action .notice:has-text("offline")', { timeout: 120_000 });
    await page.unroute('**/v1/jobs');
    await page.click('.action .notice >> text=Dismiss');
    t.equal((await newest()).id, before.id);
    t.equal((await started()).spec.data.dataset, id);
  });

  await t.test('commands that send it', async (t) => {
    const { id } = await stack.upload('a text '.repeat(500));
    await open(`#/datasets/${id}`);
    await page.click('a:text-is("Train")');
    await page.click('summary:has-text("Send it by a program")');
    await page.getByLabel('Language').selectOption('Python');
    await page.waitForSelector(`pre:has-text("client.jobs.create"):has-text("${id}")`);
    t.same(await axeFindings(page), []);
  });

  await t.test('a key that may not create runs is not offered it', async (t) => {
    const headers = await stack.headersOf('jobs:read', 'datasets');
    const reader = await openConsole(t, stack, base, { headers });
    await reader.open('#/runs');
    await reader.page.waitForSelector('h1:has-text("Runs")');
    t.equal(await reader.page.locator('a:has-text("New run")').count(), 0);
  });

  t.strictSame(
    complaints.filter((text) => !/422|ERR_FAILED/.test(text)),
    [],
  );
});
