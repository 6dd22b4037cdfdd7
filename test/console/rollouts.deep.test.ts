/** Samples of reinforcement learning in the view of a run. */
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import type { TestStack } from '../../api/testing/stack.js';
import { claimAndTrain } from '../../api/testing/training.js';
import type { Rollout } from '../../contracts/index.js';
import { rewardsKey } from '../../formats/checkpoint/layout.js';
import { EXACT } from '../../job-document/testing/documents.js';
import { until } from '../../platform/testing/waiting.js';
import { axeFindings, isTooWide, startConsole } from './console.js';

const skip = await ensureBrowser();
/** Prompts of a step; the view begins with 20. */
const PROMPTS = 25;
const LONG = 'a long answer '.repeat(300);
const WORD = 'x'.repeat(500);

type Sample = Rollout['groups'][number]['samples'][number];

const sample = (text: string, reward: number, more: Partial<Sample> = {}): Sample => ({
  text,
  tokens: Math.max(1, text.length),
  truncated: false,
  reward,
  scores: { exact: reward },
  errors: [],
  ...more,
});

const FAILED: Sample['errors'] = [{ grader: 'short', code: 'python_failed', message: 'KeyError: answer' }];

/** Samples of a step: of its first prompt every kind. */
const rolloutOf = (step: number): Rollout => ({
  step,
  call: 3 * step - 2,
  groups: Array.from({ length: PROMPTS }, (_, at) => ({
    line: at + 1,
    prompt: at === 0 ? `What is <b>${step}</b>?\nIn a word.` : `Prompt ${at} of step ${step}`,
    samples:
      at > 0
        ? [sample('same', 1), sample('same', 1)]
        : [
            sample(`<i>${step}</i>`, 1, { scores: { exact: 1, short: 0.25 } }),
            sample(LONG, 0, { truncated: true }),
            sample(WORD, 0.5),
            sample('', 0, { errors: FAILED }),
          ],
  })),
});

/** Puts the samples of a step where the worker writes them. */
async function sampled({ objects, store }: TestStack, id: string, step: number): Promise<void> {
  const rollout = rolloutOf(step);
  await objects.put(rewardsKey(id, rollout.call), Buffer.from(JSON.stringify(rollout)));
  const calls = { appended: 3 * step, answered: 3 * step, is_finished: false, bytes: 0 };
  await store.countCalls(id, calls);
}

t.test('the samples of each step', { skip }, async (t) => {
  const { page, stack, open, complaints } = await startConsole(t);
  const prompts = Array.from({ length: 8 }, (_, i) => JSON.stringify({ prompt: `${i}=`, answer: String(i) }));
  const { id: dataset } = await stack.upload(prompts.join('\n'), 'jsonl');
  const objective = {
    type: 'grpo' as const,
    grader: EXACT,
    prompts_per_step: 4,
    group_size: 2,
    max_tokens: 8,
  };
  const { id } = await stack.createJob({ data: { dataset }, train: { steps: 10, objective } });
  const heading = () => page.textContent('.rollout h2 >> nth=0');
  const press = async (button: string, step: number) => {
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.waitForSelector(`.rollout h2:has-text("What is <b>${step}</b>?")`);
  };
  const isDisabled = (button: string) => page.getByRole('button', { name: button, exact: true }).isDisabled();

  await open(`#/runs/${id}?tab=samples`);
  await page.waitForSelector('text=No step has samples yet.');
  await claimAndTrain(stack.store, id, { steps: 2, reinforcement: { reward: 0.25 } });
  for (const step of [1, 2, 3]) await sampled(stack, id, step);
  await open(`#/runs/${id}?tab=samples`);

  await t.test('the newest one, with prompts, answers and rewards', async (t) => {
    await page.waitForSelector('.rollout');
    t.equal(await heading(), 'What is <b>3</b>?\nIn a word.', 'as it is written');
    t.match(
      await page.textContent('[role=tabpanel] [role=status]'),
      '25 prompts · 52 answers · mean reward 0.952 · 1 truncated · 1 with failed graders.',
    );
    const [first] = await page.locator('.rollout').all();
    t.match(await first?.locator('> p').textContent(), 'line 1 · mean reward 0.375');
    const heads = await first?.locator('li > p:first-child').allTextContents();
    t.same(heads, [
      '1 8 tokens · exact 1, short 0.25',
      '0 4,200 tokens, truncated',
      '0.5 500 tokens',
      '0 1 token',
    ]);
    t.same(
      await Promise.all(['.good', '.warn'].map((kind) => first?.locator(`.badge${kind}`).allTextContents())),
      [
        ['1', '0.5'],
        ['0', '0'],
      ],
      'against the mean of the prompt',
    );
    t.equal(await page.locator('.rollout:nth-of-type(2) .badge:is(.good, .warn)').count(), 0);
    t.equal(await first?.locator('.errors').textContent(), 'short: KeyError: answer');
    t.equal(await first?.locator('li:last-child .text').textContent(), 'no text');
  });

  await t.test('long texts and many prompts are folded', async (t) => {
    const text = page.locator('.rollout li:nth-child(2) .text').first();
    t.ok(((await text.textContent()) ?? '').length < 400);
    await text.getByText('Show all 4,200 characters').click();
    t.ok(((await text.textContent()) ?? '').includes(LONG));
    await text.getByText('Show less').click();
    t.equal(await page.locator('.rollout').count(), 20);
    await page.click('text=Show more of the 5 other prompts');
    t.equal(await page.locator('.rollout').count(), PROMPTS);
    t.equal(await page.getByText('Show more of').count(), 0);
  });

  await t.test('the steps before and after it', async (t) => {
    t.same([await isDisabled('Next'), await isDisabled('Newest')], [true, true]);
    await press('Previous', 2);
    t.match(page.url(), '&step=2');
    await press('Previous', 1);
    t.ok(await isDisabled('Previous'));
    await press('Next', 2);
    t.ok(await isDisabled('Next'), 'step 3 is not done');
    await page.getByLabel('Step', { exact: true }).fill('');
    await page.keyboard.type('1', { delay: 20 });
    await page.keyboard.press('Enter');
    await page.waitForSelector('.rollout h2:has-text("<b>1</b>")');
    await open(`#/runs/${id}?tab=samples&step=2`);
    await page.waitForSelector('.rollout h2:has-text("<b>2</b>")');
    await press('Newest', 3);
    await open(`#/runs/${id}?tab=samples&step=9`);
    await page.waitForSelector('text=Step 9 has no samples.');
    await press('Newest', 3);
  });

  await t.test('a new step appears by itself, but not instead of a chosen one', async (t) => {
    await sampled(stack, id, 4);
    await page.waitForSelector('.rollout h2:has-text("<b>4</b>")', { timeout: 60_000 });
    await press('Previous', 3);
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await sampled(stack, id, 5);
    t.match(await heading(), /<b>3<\/b>/);
    await press('Newest', 5);
    t.equal(requests.filter((url) => url.includes('/rollout?step=')).length, 0, 'it is not read again');
    await until(async () => requests.some((url) => url.endsWith('/rollout')));
  });

  await t.test('the overview has the reward', async () => {
    await page.getByRole('tab', { name: 'overview' }).click();
    await page.waitForSelector('.figure:has(dt:text-is("Reward")) dd:text-is("0.25")');
    await page.waitForSelector('[aria-label="Reward by step, 0.25 at step 2"]');
    await page.getByRole('tab', { name: 'samples' }).click();
    await page.waitForSelector('.rollout');
  });

  await t.test('in every window', async (t) => {
    t.same(await axeFindings(page), []);
    await page.locator('.rollout').first().getByText('Show all 4,200 characters').click();
    for (const width of [390, 768, 1280, 2560]) t.notOk(await isTooWide(page, width), `fits in ${width}`);
    await page.setViewportSize({ width: 390, height: 900 });
    t.same(await axeFindings(page), []);
  });

  t.strictSame(
    complaints.filter((text) => !/404/.test(text)),
    [],
  );
});
