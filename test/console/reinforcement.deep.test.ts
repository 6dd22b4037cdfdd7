/** Reinforcement learning in the form of a new run. */
import type { Page } from 'playwright-core';
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import type { Job, Page as ListPage } from '../../contracts/index.js';
import { axeFindings, errorAt, isTooWide, startConsole } from './console.js';

const skip = await ensureBrowser();
const PLAN = '[aria-labelledby=new-plan]';
const START = `${PLAN} button:has-text("Start the run"):not(:disabled)`;
const PROMPTS = ['2', '4', '6'].map((digit) => JSON.stringify({ prompt: `${digit}=`, digit })).join('\n');
const SOURCE = 'def grade(sample, item):\n    return len(sample["output_text"]) / 10\n';

const field = (page: Page, label: string) => page.getByLabel(label, { exact: true });

/** Grades an answer. @returns what the form says about it */
async function graded(page: Page, answer: string): Promise<string> {
  await field(page, 'An answer').fill(answer);
  await page.click('text=Grade the answer');
  return (await page.textContent('.try [role=status] > :first-child')) ?? '';
}

t.test('prompts are answered and graded', { skip }, async (t) => {
  const { page, stack, open, complaints } = await startConsole(t);
  const drop = (name: string, text: string) =>
    page.setInputFiles('input[type=file]', [{ name, mimeType: '', buffer: Buffer.from(text) }]);
  const started = async () => {
    await page.click(START);
    await page.waitForSelector('[role=tablist]');
    const { data } = (await stack.request({ url: '/v1/jobs?limit=1' })).json<ListPage<Job>>();
    return (data[0] as Job).spec;
  };

  await t.test('a file of prompts starts without an error', async (t) => {
    await open('#/new');
    await drop('digits.jsonl', PROMPTS);
    await page.waitForSelector(START);
    t.equal(await page.locator('[role=alert], .errors').count(), 0, 'nothing is red');
    await page.waitForSelector('select:has(option:text-is("reinforcement by a grader"):checked)');
    await page.waitForSelector('p:has-text("Read as prompts: prompt → prompt.")');
    await page.waitForSelector('p:has-text("3 prompts")');
    t.equal(await field(page, 'Reference').inputValue(), '{{item.digit}}');
    t.equal(await page.getByLabel('Share for validation').count(), 0);
    t.equal(await field(page, 'Answers to a prompt').getAttribute('placeholder'), '8');
  });

  await t.test('errors stand at their fields', async (t) => {
    await field(page, 'Answers to a prompt').fill('1');
    await errorAt(page, 'Answers to a prompt', '2');
    await field(page, 'Answers to a prompt').fill('4');
    await field(page, 'Longest answer in tokens').fill('1000');
    await errorAt(page, 'Longest answer in tokens', 'leaves no room');
    await field(page, 'Longest answer in tokens').fill('5');
    await field(page, 'Reference').fill('{{items.digit}}');
    await errorAt(page, 'Reference', 'is no variable');
    t.same(await axeFindings(page), []);
    await field(page, 'Reference').fill('{{item.answer}}');
    await page.waitForSelector('.notice:has-text("The first line has no field answer.")');
    await field(page, 'Reference').fill('{{item.digit}}');
    await page.waitForSelector(START);
    t.equal(await page.locator('.notice:has-text("first line")').count(), 0);
  });

  await t.test('an answer is graded before the run', async (t) => {
    await page.click('summary:has-text("Try the grader")');
    t.equal(await graded(page, '2'), 'Reward 1');
    await field(page, 'An answer').fill('3');
    await page.waitForSelector('.try [role=status]:empty', { state: 'attached' });
    t.equal(await graded(page, '3'), 'Reward 0');
    await field(page, 'Line of the data as JSON').fill('{"digit": "3"}');
    t.equal(await graded(page, '3'), 'Reward 1');
    await field(page, 'Line of the data as JSON').fill('{}');
    t.equal(await graded(page, '3'), 'Reward 0');
    await page.waitForSelector('.try .errors:has-text("exact: {{item.digit}}: there is no digit")');
    t.same(await axeFindings(page), []);
    for (const width of [390, 1280, 2560]) t.notOk(await isTooWide(page, width), String(width));
  });

  await t.test('graders of other kinds', async (t) => {
    const kind = field(page, 'Kind of grader');
    await kind.selectOption('text_similarity');
    await field(page, 'Measure').selectOption('rouge_l');
    await field(page, 'Line of the data as JSON').fill('{"digit": "a b"}');
    t.equal(await graded(page, 'a b'), 'Reward 1');
    await kind.selectOption('python');
    t.match(await field(page, 'Source').inputValue(), 'item["digit"]');
    await field(page, 'Source').fill('def grade(:');
    await errorAt(page, 'Source', 'line 1');
    await field(page, 'Source').fill(SOURCE);
    t.equal(await graded(page, 'four'), 'Reward 0.4');
    await kind.selectOption('webhook');
    await errorAt(page, 'Kind of grader', 'webhook');
    await kind.selectOption('multi');
    const document = field(page, 'Grader as JSON');
    const formula = JSON.parse(await document.inputValue());
    await document.fill(JSON.stringify({ ...formula, calculate_output: 'exact + long' }));
    await errorAt(page, 'Kind of grader', 'long');
    await document.fill('{');
    await page.waitForSelector('.errors[role=alert]');
    await document.fill(JSON.stringify(formula));
    t.equal(await graded(page, 'a b'), 'Reward 1 of exact 1, short 1');
    t.same(await axeFindings(page), []);
    await kind.selectOption('python');
    t.equal(await field(page, 'Source').inputValue(), SOURCE, 'a grader is kept');
  });

  await t.test('programs and the run have the grader', async (t) => {
    await page.click('summary:has-text("Send it by a program")');
    await field(page, 'Language').selectOption('Python');
    await page.waitForSelector('pre:has-text("client.jobs.create"):has-text("def grade")');
    await page.waitForSelector(START);
    t.match((await started()).train, {
      objective: {
        type: 'grpo',
        group_size: 4,
        max_tokens: 5,
        grader: { type: 'python', name: 'python', source: SOURCE },
      },
    });
  });

  await t.test('chats may be answered anew', async (t) => {
    const messages = [
      { role: 'user', content: 'Why?' },
      { role: 'assistant', content: 'Because.' },
    ];
    await open('#/new');
    await drop('chats.jsonl', `${JSON.stringify({ messages, answer: 'Because' })}\n`.repeat(3));
    await page.waitForSelector(START);
    await field(page, 'Share for validation').fill('0.1');
    await field(page, 'Objective').selectOption('grpo');
    await page.waitForSelector(START);
    t.equal(await page.locator('[role=alert], .errors').count(), 0, 'nothing is red');
    t.equal(await page.getByLabel('Packing').count(), 0);
    const { train, data } = await started();
    t.match(train.objective, { type: 'grpo', grader: { reference: '{{item.answer}}' } });
    t.match(data, { validation_fraction: 0, chat_template: /im_start/ });
  });

  t.strictSame(
    complaints.filter((text) => !/422/.test(text)),
    [],
  );
});
