/** A new user's way through the console: from the address that signs in to the weights of the trained model. */
import { stat } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { until } from '../../platform/testing/waiting.js';

const TEXT = Array.from({ length: 400 }, (_, line) => `${line} and ${line} is ${2 * line}.\n`).join('');
/** Steps between checkpoints. */
const EVERY = 20;
/** The training is ended once it has shown what it is for. */
const STEPS = 1_000_000;
/** Longer than a stage takes on a machine under load. */
const TIMEOUT_MS = 300_000;

interface Way {
  page: Page;
  /** Address that signs in. */
  address: string;
  /** Called after each stage. */
  done(stage: string): void;
}

interface Walked {
  /** The run, which was paused and went on with three ranks. */
  run: string;
  /** The same training on one rank, without an interruption. */
  twin: string;
  /** Continuation that the trained model wrote. */
  answer: string;
  /** Bytes of its weights. */
  downloaded: number;
}

export async function walk({ page, address, done }: Way): Promise<Walked> {
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.goto(address);
  await page.waitForSelector('text=No run yet.');
  done('signed in');

  await page.click('text=Begin one here');
  const file = { name: 'sums.txt', mimeType: '', buffer: Buffer.from(TEXT) };
  await page.setInputFiles('input[type=file]', [file]);
  await page.waitForSelector('select:has(option:checked:has-text("sums.txt"))');
  done('data read');

  const run = await start(page, 'sums');
  await until(async () => (await stepOf(page)) > 0);
  done('training');
  await page.click('button:text-is("Pause")');
  await page.waitForSelector('.badge:text-is("paused")');
  done('paused');

  await page.getByLabel('Ranks', { exact: true }).selectOption('3');
  await page.click('button:text-is("Resume")');
  await page.click('role=tab[name=checkpoints]');
  const step = await untilCheckpoint(page, ({ step, ranks }) => step % EVERY === 0 && ranks === 3);
  done('resumed on 3 ranks');
  await cancel(page);

  await page.keyboard.press('g');
  await page.keyboard.press('n');
  await page.getByLabel('Dataset').selectOption({ index: 1 });
  const twin = await start(page, 'twin');
  await page.click('role=tab[name=checkpoints]');
  await untilCheckpoint(page, (one) => one.step === step);
  await cancel(page);
  await page.click('nav >> text=Runs');
  for (const name of ['sums', 'twin']) await page.getByLabel(`Compare ${name}`).check();
  await page.click('text=Compare 2');
  // Both runs may have trained further before they were cancelled.
  const equal = await page.textContent('strong:text-matches("^Equal until step [0-9]+$")');
  if (Number(equal?.split(' ').at(-1)) < step) throw new Error(`${equal}, not until ${step}`);
  done('equal digest shown');

  await page.click('nav >> text=Runs');
  await page.click('a.name:text-is("sums")');
  await page.click('role=tab[name=checkpoints]');
  await page.click('text=Try it >> nth=0');
  await page.fill('textarea', '7 and 7 is');
  await page.click('button:text-is("Continue")');
  await page.waitForSelector('text=/finish: /');
  const answer = (await page.locator('.side .text').textContent()) ?? '';
  done('answered');

  await page.goBack();
  const downloaded = await download(page);
  done('downloaded');
  return { run, twin, answer, downloaded };
}

/** Exports the newest checkpoint, and downloads the weights. @returns their size in bytes */
async function download(page: Page): Promise<number> {
  await page.click('text=Files and exports >> nth=0');
  await page.click('dialog button:text-is("Export")');
  const link = page.locator('[aria-label=Exports] a:text-is("model.safetensors")');
  const [file] = await Promise.all([page.waitForEvent('download'), link.click()]);
  return (await stat(await file.path())).size;
}

/** Fills in the form for the chosen data, and starts the run. @returns its id */
async function start(page: Page, name: string): Promise<string> {
  const fields = {
    'Name of the run': name,
    'Sequence length': '64',
    // Three leaves of four sequences, for three ranks.
    'Batch size': '12',
    'Checkpoint every … steps': String(EVERY),
    'At most': '3',
  };
  await page.getByLabel('Length in').selectOption('steps');
  await page.getByLabel('Steps', { exact: true }).fill(String(STEPS));
  for (const [label, value] of Object.entries(fields))
    await page.getByLabel(label, { exact: true }).fill(value);
  // All checkpoints stay, so that both runs have one of the same step.
  await page.click('summary:text-is("Document")');
  const document = page.getByLabel('Document as JSON');
  const written = JSON.parse(await document.inputValue());
  written.checkpoint.keep = { last: 1_000 };
  await document.fill(JSON.stringify(written));
  await page.click('button:text-is("Start the run"):not(:disabled)');
  await page.waitForSelector(`h1:text-is("${name}")`);
  return new URL(page.url()).hash.split('/').at(-1) ?? '';
}

async function stepOf(page: Page): Promise<number> {
  const text = await page.locator('.figure:has(dt:text-is("Step")) dd').textContent();
  return Number(text?.split('/')[0]?.replaceAll(',', ''));
}

/** Waits for a checkpoint in the table. @returns its step */
async function untilCheckpoint(
  page: Page,
  isWanted: (checkpoint: { step: number; ranks: number }) => boolean,
): Promise<number> {
  const found = async () => {
    const rows = await page.locator('#panel table tbody tr').all();
    const cells = await Promise.all(rows.map((row) => row.locator('th, td').allTextContents()));
    return cells
      .map(([step = '', ranks]) => ({
        step: Number.parseInt(step.replaceAll(',', ''), 10),
        ranks: Number(ranks),
      }))
      .find(isWanted);
  };
  await until(async () => (await found()) !== undefined);
  return (await found())?.step ?? Number.NaN;
}

async function cancel(page: Page): Promise<void> {
  await page.click('button:text-is("Cancel")');
  await page.click('.asking .danger');
  await page.waitForSelector('.badge:text-is("cancelled")');
}
