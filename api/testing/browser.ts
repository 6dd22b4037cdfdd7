import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
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

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Returns what axe finds fault with in the page, in one line each. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // The page's policy forbids scripts of others; those of the browser's tools are none of the page.
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { axe: runner } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; help: string; nodes: { html: string }[] }[] }> };
    };
    const { violations } = await runner.run();
    return violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`,
    );
  });
}
