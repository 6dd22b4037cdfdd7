/** The administration in the console: webhooks. */
import t from 'tap';
import { ensureBrowser } from '../../api/testing/browser.js';
import { attemptsUntil, setUp } from '../../api/webhooks/testing/sending.js';
import type { Page as Entries, Webhook } from '../../contracts/index.js';
import { axeFindings, errorAt, looksWell, openConsole, takeSecret, untilCount } from './console.js';

const skip = await ensureBrowser();

t.test('webhooks', { skip }, async (t) => {
  const sending = await setUp(t);
  const { receiver, request, startSending } = sending;
  const base = await sending.listen();
  const { page, complaints, open } = await openConsole(t, sending, base);
  const stored = async () => (await request({ url: '/v1/webhooks' })).json<Entries<Webhook>>().data;
  const head = '[aria-label=Webhook]';
  const messages = '[aria-label=Messages] tbody tr';
  await open('#/admin?tab=webhooks');

  await t.test('a webhook is created; a refused URL stays in the form', async (t) => {
    await page.waitForSelector('text=No webhook yet.');
    await looksWell(t, page);
    await page.click('text=New webhook');
    await page.fill('dialog [name=url]', 'http://192.168.0.1/hook');
    await page.fill('dialog [name=events]', 'job.state, checkpoint.*');
    await page.click('dialog button:has-text("Create")');
    await errorAt(page, 'URL');
    t.same(await axeFindings(page), []);
    await page.fill('dialog [name=url]', receiver.url);
    await page.fill('dialog [name=description]', '<i>chat</i>');
    await page.selectOption('dialog [name=jobs]', 'named');
    await page.click('dialog button:has-text("Create")');
    t.match(await takeSecret(t, page), /^whsec_/);
    await page.waitForSelector('[aria-label=Webhooks] tr:has-text("<i>chat</i>")');
    await looksWell(t, page);
    t.match(await stored(), [{ url: receiver.url, jobs: 'named', events: ['job.state', 'checkpoint.*'] }]);
    t.match(complaints.splice(0), [/422/]);
  });

  await t.test('a ping arrives; what fails shows its error and is sent again', async (t) => {
    await page.click(`a.name:has-text("${receiver.url}")`);
    await page.waitForSelector('text=Nothing was sent yet.');
    receiver.answerWith(503, 503, 503);
    const { reached, onAttempt } = attemptsUntil('failed');
    await startSending({ onAttempt });
    await page.click('text=Send a ping');
    await reached;
    const failed = page.locator(`${messages}:has-text("failed")`);
    await failed.waitFor();
    t.match(await failed.textContent(), /webhook\.ping.*3: 503 refused by receiver/);
    await failed.locator('summary').click();
    await untilCount(page, `${messages} details[open] li`, 3);
    await page.waitForSelector(`${head} :text("failing since")`);
    await looksWell(t, page);
    await page.click('text=Redeliver');
    await receiver.until((received) => received.length === 4);
    await page.waitForSelector(`${messages}:has-text("succeeded")`);
    t.equal(await page.locator(`${messages} details[open]`).count(), 1, 'and stays open');
  });

  await t.test('it is changed, disabled and enabled; a refusal stays', async (t) => {
    await page.click('text=Edit');
    t.equal(await page.inputValue('dialog [name=events]'), 'job.state checkpoint.*');
    t.equal(await page.inputValue('dialog [name=jobs]'), 'named');
    await page.fill('dialog [name=events]', 'no.such.type');
    await page.click('dialog button:has-text("Save")');
    await errorAt(page, 'Events, such as job.state or checkpoint.*');
    await page.fill('dialog [name=events]', 'job.*');
    await page.selectOption('dialog [name=jobs]', 'all');
    await page.click('dialog button:has-text("Save")');
    await page.waitForSelector(`${head}:has-text("Events job.* of all runs.")`);
    await page.click(`${head} button:has-text("Disable")`);
    await page.waitForSelector(`${head} .badge:text-is("disabled")`);
    t.ok(await page.isDisabled('button:has-text("Send a ping")'));
    t.match(await stored(), [{ enabled: false, events: ['job.*'], jobs: 'all' }]);
    await page.click(`${head} button:has-text("Enable")`);
    await page.waitForSelector(`${head} .badge:text-is("enabled")`);
    t.match(complaints.splice(0), [/422/]);
  });

  await t.test('its secret is rotated', async (t) => {
    await page.click('text=Rotate secret');
    await page.selectOption('dialog select', '3600');
    await page.click('dialog button:has-text("Rotate")');
    t.match(await takeSecret(t, page), /^whsec_/);
    await page.waitForSelector(`${head}:has-text("The previous secret signs, too, until")`);
    t.equal((await stored())[0]?.secrets.length, 2);
  });

  await t.test('it is deleted after it was asked once', async (t) => {
    await page.click(`${head} button:has-text("Delete")`);
    await page.waitForSelector('.asking .danger:focus');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=No webhook yet.');
    t.same(await stored(), []);
    await page.goBack();
    await page.waitForSelector('.notice:has-text("webhook_not_found")');
    t.ok(complaints.splice(0).every((text) => text.includes('404')));
  });

  t.same(complaints, []);
});
