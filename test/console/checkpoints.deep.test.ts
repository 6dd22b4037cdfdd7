/** Checkpoints of a run: the time line, exports, files, and resuming. */
import { readFile } from 'node:fs/promises';
import t from 'tap';
import type { ExportProgress } from '../../api/services.js';
import { ensureBrowser } from '../../api/testing/browser.js';
import { startTestStack } from '../../api/testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../api/testing/training.js';
import type { ExportPayload, SignInCode } from '../../contracts/index.js';
import { putExportRecord } from '../../formats/checkpoint/export-record.js';
import { putTestCheckpoint } from '../../formats/testing/checkpoints.js';
import { axeFindings, isTooWide, openConsole, refuse, untilCount } from './console.js';

t.test('checkpoints in a browser', { skip: await ensureBrowser() }, async (t) => {
  const asked: ExportPayload[] = [];
  let progress: ExportProgress = { state: 'queued' };
  const stack = await startTestStack({
    exports: {
      request: async (_pool, payload) => {
        asked.push(payload);
        return progress;
      },
      progress: async (_pool, { prefix }) =>
        asked.some((payload) => payload.prefix === prefix) ? progress : null,
    },
  });
  t.teardown(() => stack.close());
  const base = await stack.listen();
  const { page, complaints, open } = await openConsole(t, stack, base);
  const { id } = await stack.createJob({ name: 'saved' });
  const execution = await claimAndTrain(stack.store, id, { steps: 4 });
  const commit = async (step: number, validation: number) => {
    const checkpoint = { ...checkpointOf(id, step), eval_losses: { validation } };
    await putTestCheckpoint(stack.objects, checkpoint.prefix, { numels: [10, 6], ranks: 2 }, checkpoint.id);
    await stack.store.commitCheckpoint(id, execution, checkpoint);
    return checkpoint;
  };
  await commit(6, 1.5);
  const newest = await commit(8, 1.75);
  const row = (step: number) =>
    page.locator('tbody tr').filter({ has: page.locator(`th:has-text("${step}")`) });
  await open(`#/runs/${id}?tab=checkpoints`);

  await t.test('the time line marks them, and the keyboard chooses one', async (t) => {
    await untilCount(page, '[role=option]', 3);
    t.match(await row(8).textContent(), /newest/);
    t.match(await row(6).textContent(), /best/);
    await page.focus('[role=listbox]');
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    await page.waitForSelector('tr.chosen th:has-text("6")');
    t.match(await page.textContent('[role=option][aria-selected=true]'), /step 6 · best · 2 ranks/);
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowLeft');
    await page.waitForSelector('tr.chosen th:has-text("4")');
    await page.locator('[role=option]').last().click();
    await page.waitForSelector('tr.chosen th:has-text("8")');
    t.same(await axeFindings(page), []);
    for (const width of [390, 2560, 1280]) t.notOk(await isTooWide(page, width), `fits in ${width}`);
  });

  await t.test(
    'an export is requested in what the format allows, followed, and offered for download',
    async (t) => {
      await row(8).getByText('Files and exports').click();
      await page.waitForSelector('dialog >> text=was not exported yet');
      await page.selectOption('dialog label:has-text("Format") select', 'deepspeed_universal');
      t.same(await page.locator('label:has-text("Precision") option').allTextContents(), ['fp32']);
      await page.selectOption('dialog label:has-text("Format") select', 'safetensors');
      await page.selectOption('dialog label:has-text("Precision") select', 'bf16');
      await page.check('dialog label:has-text("with a TensorBoard file") input');
      await page.click('dialog button:has-text("Export")');
      await page.waitForSelector('dialog .badge:has-text("queued")');
      const [payload] = asked;
      t.match(payload, {
        checkpoint: { id: newest.id },
        format: 'safetensors',
        dtype: 'bf16',
        weights: 'trained',
        tensorboard: true,
      });
      progress = { state: 'running' };
      await page.waitForSelector('dialog .badge:has-text("running")', { timeout: 120_000 });
      t.same(await axeFindings(page), []);
      const bytes = Buffer.from('{"model_type":"llama"}');
      await stack.objects.put(`${payload?.prefix}/config.json`, bytes);
      const { prefix = '', format, dtype, weights, tensorboard } = payload!;
      await putExportRecord(stack.objects, {
        format_version: 1,
        checkpoint_id: newest.id,
        job_id: id,
        format,
        dtype,
        weights,
        tensorboard,
        prefix,
        state_digest: newest.state_digest,
        files: [{ name: 'config.json', bytes: bytes.length, sha256: '0'.repeat(64) }],
      });
      await page.waitForSelector('dialog a:has-text("config.json")', { timeout: 120_000 });
      t.notOk(await isTooWide(page, 390));
      await page.keyboard.press('Escape');
      await page.waitForSelector('dialog', { state: 'detached' });
      t.equal(await page.evaluate('document.activeElement.textContent.trim()'), 'Files and exports');
    },
  );

  await t.test('an export that failed says why; what is refused stays until it is read', async (t) => {
    progress = { state: 'failed', error: { code: 'checkpoint_not_found', message: 'it was removed' } };
    await row(6).getByText('Files and exports').click();
    await page.click('dialog button:has-text("Export")');
    await page.waitForSelector('dialog .notice:has-text("it was removed")');
    const unrefuse = await refuse(page, '**/export', 404, 'checkpoint_not_found');
    await page.click('dialog button:has-text("Export")');
    const refusal = page.locator('dialog .notice:has-text("refused: checkpoint_not_found")');
    await refusal.waitFor();
    t.same(await axeFindings(page), []);
    await refusal.getByText('Dismiss').click();
    await refusal.waitFor({ state: 'detached' });
    await unrefuse();
    await page.keyboard.press('Escape');
    t.ok(complaints.splice(0).every((text) => text.includes('404')));
  });

  await t.test('files are downloaded with the session of the browser', async (t) => {
    const code = (await stack.request({ method: 'POST', url: '/v1/sign-in-codes' })).json<SignInCode>().code;
    await page.setExtraHTTPHeaders({});
    const other = await page.context().browser()!.newPage();
    await other.goto(`${base}/#/sign-in/${code}`);
    await other.waitForSelector('text=saved');
    await other.goto(`${base}/#/runs/${id}?tab=checkpoints`);
    await other.click('text=Files and exports >> nth=0');
    for (const [name, key] of [
      ['MANIFEST.json', `${newest.prefix}/MANIFEST.json`],
      ['config.json', `${asked[0]?.prefix}/config.json`],
    ] as const) {
      const [download] = await Promise.all([
        other.waitForEvent('download'),
        other.click(`dialog a:has-text("${name}")`),
      ]);
      t.equal(download.suggestedFilename(), name);
      t.ok((await readFile(await download.path())).equals(Buffer.from(await stack.objects.get(key))), name);
    }
  });

  await t.test(
    'a paused run is resumed from its newest checkpoint, on another number of ranks',
    async (t) => {
      const second = await openConsole(t, stack, base);
      await stack.store.requestPause(id);
      await stack.store.releaseAttempt(id, execution, { to: 'paused' });
      await second.open(`#/runs/${id}?tab=checkpoints`);
      const newestRow = second.page.locator('tbody tr').first();
      await newestRow.getByLabel('Ranks').selectOption('3');
      const unrefuse = await refuse(second.page, '**/resume', 403, 'ranks_quota_exceeded');
      await newestRow.getByText('Resume from here').click();
      await newestRow.locator('.notice:has-text("ranks_quota_exceeded")').waitFor();
      await unrefuse();
      await newestRow.getByText('Resume from here').click();
      await second.page.waitForSelector('.badge:has-text("queued")');
      t.equal((await stack.store.getJob(id))?.requested_ranks, 3);
      await untilCount(second.page, 'text=Resume from here', 0);
    },
  );

  await t.test('a key that may only read sees and downloads, and changes nothing', async (t) => {
    const reading = await openConsole(t, stack, base, { headers: await stack.headersOf('jobs:read') });
    await reading.open(`#/runs/${id}?tab=checkpoints`);
    await reading.page.waitForSelector('tbody tr');
    for (const label of ['Pin', 'Fork from here', 'Resume from here'])
      t.equal(await reading.page.locator(`tbody :is(a, button):has-text("${label}")`).count(), 0, label);
    await reading.page.click('text=Files and exports >> nth=0');
    await reading.page.waitForSelector('dialog a:has-text("MANIFEST.json")');
    t.equal(await reading.page.locator('dialog button:text-is("Export")').count(), 0);
    t.same(reading.complaints, []);
  });
});
