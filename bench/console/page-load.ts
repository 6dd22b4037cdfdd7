import type { Browser, BrowserContextOptions } from 'playwright-core';
import { median } from '../report.js';

/** Figures of a page that is opened with an empty cache, by the browser's own metrics; medians. */
interface PageLoad {
  first_paint_ms: number;
  largest_paint_ms: number;
  /** The time beyond 50 ms of tasks until the page is idle. */
  blocked_ms: number;
  /** Cumulative layout shift. */
  layout_shift: number;
  requests: number;
  /** Bytes of bodies and headers, compressed as they are sent. */
  transferred_kb: number;
}

const IDLE_MS = 1_000;

/** Gathers what the page has measured when nothing has been loaded for a while. */
const GATHER = `new Promise((resolve) => {
  const entries = (type) => new Promise((done) => {
    const found = [];
    new PerformanceObserver((list) => found.push(...list.getEntries())).observe({ type, buffered: true });
    setTimeout(() => done(found), 200);
  });
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  setTimeout(async () => {
    const [paints, largest, long, shifts] = await Promise.all(['paint', 'largest-contentful-paint', 'longtask', 'layout-shift'].map(entries));
    const files = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    resolve({
      first_paint_ms: paints.find(({ name }) => name === 'first-contentful-paint').startTime,
      largest_paint_ms: largest.at(-1).startTime,
      blocked_ms: sum(long.map(({ duration }) => duration - 50)),
      layout_shift: sum(shifts.map(({ value }) => value)),
      requests: files.length,
      transferred_kb: sum(files.map(({ transferSize }) => transferSize)) / 1000,
    });
  }, ${IDLE_MS});
})`;

/** Opens the page several times, each time in a new context. @param ready selector of what the page is for */
export async function measureLoad(
  browser: Browser,
  url: string,
  ready: string,
  { repeats, ...options }: BrowserContextOptions & { repeats: number },
): Promise<PageLoad> {
  const loads: PageLoad[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    await page.goto(url);
    await page.waitForSelector(ready);
    loads.push((await page.evaluate(GATHER)) as PageLoad);
    await context.close();
  }
  const medianOf = (name: keyof PageLoad, digits = 0) =>
    Number(median(loads.map((load) => load[name])).toFixed(digits));
  return {
    first_paint_ms: medianOf('first_paint_ms'),
    largest_paint_ms: medianOf('largest_paint_ms'),
    blocked_ms: medianOf('blocked_ms'),
    layout_shift: medianOf('layout_shift', 3),
    requests: medianOf('requests'),
    transferred_kb: medianOf('transferred_kb'),
  };
}
