/** The console in a browser, over an API whose runs the test plays. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Locator, Page } from 'playwright-core';
import type { Test } from 'tap';
import { type OpenedPage, openPage } from '../../api/testing/browser.js';
import { ADMIN_KEY, startTestStack, type TestStack } from '../../api/testing/stack.js';
import { until } from '../../platform/testing/waiting.js';

interface TestConsole extends OpenedPage {
  stack: TestStack;
  base: string;
  /** Opens a view of the console, as a new page would. */
  open(hash: string): Promise<void>;
}

export interface ConsoleOptions {
  width?: number;
  dark?: boolean;
  /** Header of the key; the admin key by default. */
  headers?: { authorization: string };
}

/** Opens the console with a key in a header: signing in has tests of its own. */
export async function openConsole(
  t: Test,
  stack: TestStack,
  base: string,
  { width = 1280, dark = false, headers = { authorization: `Bearer ${ADMIN_KEY}` } }: ConsoleOptions = {},
): Promise<TestConsole> {
  const opened = await openPage(t, {
    viewport: { width, height: 900 },
    colorScheme: dark ? 'dark' : 'light',
    extraHTTPHeaders: headers,
  });
  const { page } = opened;
  const open = async (hash: string) => {
    await page.goto('about:blank');
    await page.goto(`${base}/${hash}`);
  };
  return { ...opened, stack, base, open };
}

export async function startConsole(t: Test, options: ConsoleOptions = {}): Promise<TestConsole> {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  return openConsole(t, stack, await stack.listen(), options);
}

/** Requests of the page to the API from now on, by method and path. */
export function countRequests(page: Page): string[] {
  const seen: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith('/v1/')) seen.push(`${request.method()} ${pathname}`);
  });
  return seen;
}

/** Lets the server refuse the requests to some addresses. @returns a function that ends it */
export async function refuse(
  page: Page,
  urls: string,
  status: number,
  code: string,
): Promise<() => Promise<void>> {
  const problem = { type: 'about:blank', title: 'Refused', status, code, detail: `refused: ${code}` };
  const answer = { status, contentType: 'application/problem+json', body: JSON.stringify(problem) };
  await page.route(urls, (route) => route.fulfill(answer));
  return () => page.unroute(urls);
}

/** Waits until the page has so many of something. */
export const untilCount = (page: Page, selector: string, count: number) =>
  until(async () => (await page.locator(selector).count()) === count);

/** A way to a server that can be cut, as when a network fails. */
export async function cuttable(t: Test, base: string): Promise<{ url: string; cut(): void; mend(): void }> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const proxy = createServer((socket) => {
    const server = connect(Number(new URL(base).port), '127.0.0.1');
    const both = [socket, server];
    for (const one of both) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        sockets.delete(one);
        for (const other of both) other.destroy();
      });
    }
    if (isCut) socket.destroy();
    else socket.pipe(server).pipe(socket);
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  t.teardown(() => {
    cut();
    proxy.close();
  });
  const mend = () => {
    isCut = false;
  };
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, cut, mend };
}

const axe = () => readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResult {
  violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
}

/** Returns axe's violations, with the page in the light and in the dark colour scheme. */
export async function axeFindings(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    // The script is evaluated, not added as an element: the content security policy forbids scripts of others.
    await page.evaluate(axe());
    const { violations } = await page.evaluate<AxeResult>('axe.run()');
    for (const { id, nodes } of violations)
      found.push(
        `${colorScheme} ${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
      );
  }
  return found;
}

/** Returns whether the page scrolls sideways at a window width in pixels. Tables may scroll inside themselves. */
export async function isTooWide(page: Page, width: number): Promise<boolean> {
  await page.setViewportSize({ width, height: 800 });
  return page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
}

/** A dialog's secret, after it was copied; the dialog is closed and has left nothing of it. */
export async function takeSecret(t: Test, page: Page): Promise<string> {
  await page.waitForSelector('dialog:has-text("it will not be shown again")');
  const secret = await page.inputValue('dialog input');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.click('dialog button:has-text("Copy")');
  await page.waitForSelector('dialog :text("copied")');
  t.equal(await page.evaluate('navigator.clipboard.readText()'), secret);
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  t.match(page.url(), '#/admin', 'keys do not lead away from it');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });
  t.notOk((await page.content()).includes(secret));
  return secret;
}

/** Axe, and the narrowest and the widest window. */
export async function looksWell(t: Test, page: Page): Promise<void> {
  t.same(await axeFindings(page), []);
  for (const width of [390, 2560]) t.notOk(await isTooWide(page, width), `fits in ${width}`);
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** Waits for an error at the field with this label. */
export const errorAt = (owner: Page | Locator, label: string, text = '') =>
  owner.locator(`:is(label, legend):text-is("${label}") ~ .errors:has-text("${text}")`).waitFor();

/** An error that stays until it is dismissed. */
export async function refusal(t: Test, owner: Page | Locator, code: string): Promise<void> {
  const notice = owner.locator(`.notice:has-text("${code}")`);
  await notice.waitFor();
  await notice.locator('text=Dismiss').click();
  t.equal(await notice.count(), 0);
}
