/** The console in a browser, signed in with a key, and checked for accessibility. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { openPage } from '../../api/testing/browser.js';

const axe = () => readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResult {
  violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
}

/** A page of the console whose requests carry this key. */
export async function openConsole(t: Test, base: string, key: string, path: string) {
  const { page, complaints } = await openPage(t);
  await page.setExtraHTTPHeaders({ authorization: `Bearer ${key}` });
  await page.goto(`${base}/#/${path}`);
  return { page, complaints };
}

/** What axe finds on the page, in light and in dark. */
export async function axeFindings(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    // Of the page, not added to it: its policy allows no other scripts.
    await page.evaluate(axe());
    const { violations } = await page.evaluate<AxeResult>('axe.run()');
    for (const { id, nodes } of violations)
      found.push(
        `${colorScheme} ${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
      );
  }
  return found;
}

/** Whether the page is wider than the window: only tables may scroll, in themselves. */
export async function isTooWide(page: Page, width: number): Promise<boolean> {
  await page.setViewportSize({ width, height: 800 });
  return page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
}
