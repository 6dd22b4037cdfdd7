/** The shortest way of a new user from the address that signs in to the adapter of a fine-tuned model. */
import type { Page } from 'playwright-core';

/** Longer than the training takes on a machine under load. */
const TIMEOUT_MS = 300_000;
const CHATS = Array.from({ length: 60 }, (_, number) =>
  JSON.stringify({
    messages: [
      { role: 'user', content: `What is ${number} plus ${number}?` },
      { role: 'assistant', content: `It is ${2 * number}.` },
    ],
  }),
).join('\n');
const READY = 'button:has-text("Start the run"):not(:disabled)';
const RED = '.notice.bad, .errors li, .badge.bad';

interface FirstLora {
  /** Actions of the user, in order. */
  actions: string[];
  /** Red texts that were seen after an action. */
  red: string[];
  /** Name of the downloaded archive. */
  file: string;
}

/** @param address that signs in */
export async function firstLora(page: Page, address: string): Promise<FirstLora> {
  page.setDefaultTimeout(TIMEOUT_MS);
  const [actions, red]: [string[], string[]] = [[], []];
  const act = async (action: string, does: () => Promise<unknown>, shown: string) => {
    actions.push(action);
    await does();
    await page.waitForSelector(shown);
    red.push(...(await page.locator(RED).allTextContents()));
  };
  const file = { name: 'chats.jsonl', mimeType: '', buffer: Buffer.from(CHATS) };
  await act('open', () => page.goto(address), 'text=No run yet.');
  await act('begin', () => page.click('text=Begin one here'), 'input[type=file]');
  await act('drop', () => page.setInputFiles('input[type=file]', [file]), READY);
  await act('adapters', () => page.getByLabel('Train', { exact: true }).selectOption('lora'), READY);
  await act('start', () => page.click(READY), '.badge:text-is("succeeded")');
  await act('checkpoints', () => page.click('role=tab[name=checkpoints]'), 'text=Files and exports');
  await act('files', () => page.click('text=Files and exports >> nth=0'), 'dialog select');
  await act('format', () => page.locator('dialog select').first().selectOption('peft'), 'dialog');
  const archive = '[aria-label=Exports] a:has-text("archive")';
  await act('export', () => page.click('dialog button:text-is("Export")'), archive);
  const downloading = page.waitForEvent('download');
  await act('download', () => page.click(archive), archive);
  return { actions, red, file: (await downloading).suggestedFilename() };
}
