import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import type { Test } from 'tap';
import { ensureInstalled } from '../../platform/testing/programs.js';

const BROWSER_PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const browserPath = () => BROWSER_PATHS.find((path) => existsSync(path));

/** Reason for skipping browser tests, or false. */
export const noBrowser = browserPath() === undefined && 'needs chromium: apt-get install chromium';

/** The same; installs the browser where that is possible without a prompt. */
export async function ensureBrowser(): Promise<string | false> {
  const missing = () => (browserPath() === undefined ? ['chromium'] : []);
  return (await ensureInstalled(missing, ['chromium'])) ?? false;
}

export interface OpenedPage {
  page: Page;
  /** Errors that the browser reported. */
  complaints: string[];
}

/** A page that is closed with the test. */
export async function openPage(t: Test, options: BrowserContextOptions = {}): Promise<OpenedPage> {
  const browser: Browser = await chromium.launch({
    executablePath: browserPath() ?? '',
    args: ['--no-sandbox'],
  });
  t.teardown(() => browser.close());
  const page = await browser.newPage(options);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  return { page, complaints };
}
