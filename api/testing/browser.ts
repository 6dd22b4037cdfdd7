import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { Test } from 'tap';

const BROWSER_PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const browserPath = BROWSER_PATHS.find((path) => existsSync(path));

/** Reason for skipping browser tests, or false. */
export const noBrowser = browserPath === undefined && 'needs chromium: apt-get install chromium';

/** A page that is closed with the test, and the errors that the browser reported. */
export async function openPage(t: Test): Promise<{ page: Page; complaints: string[] }> {
  const browser: Browser = await chromium.launch({
    executablePath: browserPath ?? '',
    args: ['--no-sandbox'],
  });
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  return { page, complaints };
}
