/**
 * The console in Chromium under load: `npm run bench -- console --view all --runs 2000 --steps 100000 --seconds 60`.
 *
 * The first line is the load of the list of runs with an empty cache. Each other line is one view, while steps arrive
 * five times a second:
 *
 * - the time until the view shows its data;
 * - frames over 50 ms (long tasks of the browser);
 * - requests per ten seconds beside the stream;
 * - the JavaScript heap after a collection, at the beginning and at the end.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type CDPSession, chromium, type Page } from 'playwright-core';
import { ADMIN_KEY, smallSpec, startTestStack, type TestStack } from '../api/testing/stack.js';
import { claimAndTrain, metricOf, progressOf } from '../api/testing/training.js';
import { measureLoad } from './console/page-load.js';
import { benchOptions, count, someOf } from './options.js';
import { report } from './report.js';

const STEP_MS = 200;
const BATCH = 500;
const PAGE = 50;
const LOADS = 7;

const VIEWS = ['runs', 'run', 'charts'] as const;

const {
  runs,
  steps,
  seconds,
  view: chosen,
} = benchOptions({
  view: someOf(VIEWS, 'all'),
  runs: count(2_000),
  steps: count(100_000),
  seconds: count(60),
});

async function addRuns(stack: TestStack): Promise<string> {
  const dataset = await stack.upload('text '.repeat(100));
  const spec = { ...smallSpec(dataset.id), train: { ...smallSpec(dataset.id).train, steps: 10 * steps } };
  const create = async (name: string) =>
    (await stack.request({ method: 'POST', url: '/v1/jobs', payload: { ...spec, name } })).json<{
      id: string;
    }>().id;
  for (let run = 1; run < runs; run += 1) await create(`run ${run}`);
  return create('long');
}

/** Opens a view, and reads it while steps arrive. */
async function look(page: Page, cdp: CDPSession, { name, hash, ready }: View, step: () => Promise<unknown>) {
  const requests: string[] = [];
  page.on(
    'request',
    (request) => new URL(request.url()).pathname.startsWith('/v1/') && requests.push(request.url()),
  );
  const began = performance.now();
  await page.goto('about:blank');
  await page.goto(`${base}/${hash}`);
  await ready(page);
  const shownMs = performance.now() - began;
  const heapBefore = await heapOf(cdp);
  // Tasks before are those of the load.
  await page.evaluate(
    'globalThis.long = []; new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) long.push(duration); }).observe({ type: "longtask" })',
  );
  const before = requests.length;
  for (const end = performance.now() + 1_000 * seconds; performance.now() < end; await sleep(STEP_MS))
    await step();
  const long = (await page.evaluate('long')) as number[];
  report('console', {
    view: name,
    runs,
    steps,
    seconds,
    shown_ms: Math.round(shownMs),
    long_frames: long.length,
    longest_frame_ms: Math.round(Math.max(0, ...long)),
    requests_per_10_s: Number(((10 * (requests.length - before)) / seconds).toFixed(2)),
    heap_mib_before: heapBefore,
    heap_mib_after: await heapOf(cdp),
  });
}

interface View {
  name: string;
  hash: string;
  /** Resolves when the view shows what it is for. */
  ready(page: Page): Promise<unknown>;
}

async function heapOf(cdp: CDPSession): Promise<number> {
  await cdp.send('HeapProfiler.collectGarbage');
  const { usedSize } = await cdp.send('Runtime.getHeapUsage');
  return Number((usedSize / 2 ** 20).toFixed(1));
}

const stack = await startTestStack({ limits: { requests_per_minute: 1_000_000 } });
const base = await stack.listen();
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const long = await addRuns(stack);
  const execution = await claimAndTrain(stack.store, long, { steps: 1 });
  for (let first = 2; first <= steps; first += BATCH) {
    const metrics = Array.from({ length: Math.min(BATCH, steps - first + 1) }, (_, index) =>
      metricOf(first + index),
    );
    await stack.store.report(long, execution, metrics, progressOf(first, 10 * steps), { batch: first });
  }
  let last = steps;
  const step = () => {
    last += 1;
    return stack.store.report(long, execution, [metricOf(last)], progressOf(last, 10 * steps), {
      batch: last,
    });
  };
  const signedIn = { extraHTTPHeaders: { authorization: `Bearer ${ADMIN_KEY}` } };
  const load = await measureLoad(browser, `${base}/#/runs`, 'table.runs', { repeats: LOADS, ...signedIn });
  report('console', { view: 'load', runs, ...load });
  const page = await browser.newPage(signedIn);
  const cdp = await page.context().newCDPSession(page);
  const allRuns = async (tab: Page) => {
    await tab.waitForSelector('table.runs');
    for (let shown = PAGE; shown < runs; shown += PAGE) {
      await tab.click('text=Load older runs');
      await tab.waitForSelector(`table.runs[aria-rowcount="${Math.min(runs, shown + PAGE) + 1}"]`);
    }
  };
  const chart = (tab: Page) => tab.waitForSelector('.chart canvas');
  const views: Record<(typeof VIEWS)[number], Omit<View, 'name'>> = {
    runs: { hash: '#/runs', ready: allRuns },
    run: { hash: `#/runs/${long}`, ready: chart },
    charts: { hash: `#/runs/${long}?tab=charts`, ready: chart },
  };
  for (const name of chosen) await look(page, cdp, { name, ...views[name] }, step);
} finally {
  await browser.close();
  await stack.close();
}
