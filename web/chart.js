/**
 * The loss curve as SVG: a line of the mean per pixel with the range behind it, a tick for each committed checkpoint, and a
 * band along the top that shows how many ranks did each step.
 */
import { replace, svg } from './dom.js';
import { compact, count, loss as formatLoss, ranks as ranksText } from './format.js';

const HEIGHT = 280;
const MARGIN = { top: 30, right: 16, bottom: 30, left: 52 };
const MIN_WIDTH = 320;
const Y_TICKS = 5;
const X_TICKS = 6;

export class LossChart {
  /** step → {step, loss, world_size, tokens_per_second}: a step that was repeated after a recovery replaces itself */
  #points = new Map();
  #checkpoints = new Set();
  #totalSteps = 1;
  #element;
  #hover = null;
  #scheduled = false;

  /** @param {HTMLElement} element filled by the chart, and redrawn when its width changes */
  constructor(element, signal) {
    this.#element = element;
    const observer = new ResizeObserver(() => this.#schedule());
    observer.observe(element);
    signal.addEventListener('abort', () => observer.disconnect());
    element.addEventListener('pointermove', (event) => this.#point(event));
    element.addEventListener('pointerleave', () => this.#point(null));
  }

  /** @param {{step: number, loss: number | null, world_size: number}[]} metrics */
  add(metrics) {
    for (const metric of metrics) if (metric.loss !== null) this.#points.set(metric.step, metric);
    this.#schedule();
  }

  addCheckpoint(step) {
    this.#checkpoints.add(step);
    this.#schedule();
  }

  /** @param {number | null} steps null while their number is unknown */
  setTotalSteps(steps) {
    this.#totalSteps = Math.max(1, steps ?? 1);
    this.#schedule();
  }

  /** Many changes in one frame are one drawing. */
  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#draw();
    });
  }

  #point(event) {
    this.#hover = event === null ? null : event.clientX - this.#element.getBoundingClientRect().left;
    this.#schedule();
  }

  #draw() {
    const width = Math.max(MIN_WIDTH, this.#element.clientWidth);
    const points = [...this.#points.values()].sort((a, b) => a.step - b.step);
    const scale = makeScale(points, shownSteps(points, this.#totalSteps), width);
    replace(
      this.#element,
      svg(
        'svg',
        {
          viewBox: `0 0 ${width} ${HEIGHT}`,
          width,
          height: HEIGHT,
          role: 'img',
          'aria-label': describe(points),
        },
        ...(points.length === 0 ? [emptyText(width)] : axes(scale, width)),
        ...rankBand(points, scale),
        ...checkpointTicks(this.#checkpoints, scale),
        ...curve(points, scale),
        ...(this.#hover === null ? [] : crosshair(points, scale, this.#hover, width)),
      ),
    );
  }
}

/** Steps that the chart has room for: all of them, or at the beginning of a long job somewhat more than are done. */
function shownSteps(points, totalSteps) {
  const done = points.at(-1)?.step ?? 0;
  return done === 0 || done > totalSteps / 10 ? totalSteps : Math.min(totalSteps, Math.ceil(done * 1.5));
}

/** Maps steps and losses to pixels. */
function makeScale(points, totalSteps, width) {
  const losses = points.map((point) => point.loss);
  const low = losses.reduce((a, b) => Math.min(a, b), losses[0] ?? 0);
  const high = losses.reduce((a, b) => Math.max(a, b), losses[0] ?? 1);
  const ticks = niceTicks(low, high, Y_TICKS);
  const [yMin, yMax] = [ticks[0], ticks.at(-1)];
  const innerWidth = width - MARGIN.left - MARGIN.right;
  const innerHeight = HEIGHT - MARGIN.top - MARGIN.bottom;
  return {
    ticks,
    totalSteps,
    x: (step) => MARGIN.left + (step / totalSteps) * innerWidth,
    y: (value) => MARGIN.top + (1 - (value - yMin) / (yMax - yMin)) * innerHeight,
    step: (x) => ((x - MARGIN.left) / innerWidth) * totalSteps,
  };
}

/** Round numbers that enclose [low, high]. */
function niceTicks(low, high, wanted) {
  const span = Math.max(high - low, Math.abs(high) * 1e-3, 1e-6);
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => span / size <= wanted);
  const first = Math.floor(low / step);
  const last = Math.max(first + 1, Math.ceil(high / step));
  return Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toPrecision(12)),
  );
}

function emptyText(width) {
  const middle = { x: width / 2, y: HEIGHT / 2, 'text-anchor': 'middle' };
  return svg('text', { class: 'empty-chart', ...middle }, 'The curve begins with the first step.');
}

function axes(scale, width) {
  const bottom = HEIGHT - MARGIN.bottom;
  const horizontal = scale.ticks.flatMap((value) => [
    svg('line', {
      class: 'grid',
      x1: MARGIN.left,
      x2: width - MARGIN.right,
      y1: scale.y(value),
      y2: scale.y(value),
    }),
    svg(
      'text',
      { class: 'label', x: MARGIN.left - 8, y: scale.y(value) + 4, 'text-anchor': 'end' },
      String(value),
    ),
  ]);
  const steps = niceTicks(0, scale.totalSteps, X_TICKS).filter((step) => step <= scale.totalSteps);
  const vertical = steps.map((step) =>
    svg('text', { class: 'label', x: scale.x(step), y: bottom + 20, 'text-anchor': 'middle' }, compact(step)),
  );
  return [...horizontal, ...vertical];
}

/** Runs of steps that the same number of ranks did, as a thin band with the number above it. */
function rankBand(points, scale) {
  const runs = [];
  for (const { step, world_size: ranks } of points) {
    const last = runs.at(-1);
    if (last?.ranks === ranks) last.end = step;
    else runs.push({ ranks, begin: step - 1, end: step });
  }
  return runs.flatMap(({ ranks, begin, end }) => {
    const [left, right] = [scale.x(begin), scale.x(end)];
    return [
      svg('rect', {
        class: `ranks ranks-${((ranks - 1) % 4) + 1}`,
        x: left,
        width: Math.max(1, right - left),
        y: 18,
        height: 4,
      }),
      right - left > 46 && svg('text', { class: 'label', x: left, y: 12 }, ranksText(ranks)),
    ];
  });
}

function checkpointTicks(steps, scale) {
  const bottom = HEIGHT - MARGIN.bottom;
  return [...steps].map((step) =>
    svg('line', {
      class: 'checkpoint',
      x1: scale.x(step),
      x2: scale.x(step),
      y1: bottom - 5,
      y2: bottom + 5,
    }),
  );
}

function curve(points, scale) {
  const bins = binned(points, scale);
  if (bins.length === 0) return [];
  const line = bins.map(({ x, mean }) => `${x.toFixed(1)},${scale.y(mean).toFixed(1)}`).join('L');
  const upper = bins.map(({ x, max }) => `${x.toFixed(1)},${scale.y(max).toFixed(1)}`);
  const lower = bins.map(({ x, min }) => `${x.toFixed(1)},${scale.y(min).toFixed(1)}`).reverse();
  return [
    svg('path', { class: 'range', d: `M${[...upper, ...lower].join('L')}Z` }),
    svg('path', { class: 'curve', d: `M${line}` }),
  ];
}

/** Mean and range of the points that fall on one pixel. */
function binned(points, scale) {
  const bins = [];
  for (const { step, loss } of points) {
    const x = scale.x(step);
    const last = bins.at(-1);
    if (last !== undefined && x - last.x < 1) {
      last.sum += loss;
      last.num += 1;
      last.mean = last.sum / last.num;
      last.min = Math.min(last.min, loss);
      last.max = Math.max(last.max, loss);
    } else {
      bins.push({ x, sum: loss, num: 1, mean: loss, min: loss, max: loss });
    }
  }
  return bins;
}

function crosshair(points, scale, hoverX, width) {
  const wanted = scale.step(hoverX);
  const nearest = points.reduce(
    (best, point) =>
      best === null || Math.abs(point.step - wanted) < Math.abs(best.step - wanted) ? point : best,
    null,
  );
  if (nearest === null) return [];
  const [x, y] = [scale.x(nearest.step), scale.y(nearest.loss)];
  const text = `step ${count(nearest.step)} · loss ${formatLoss(nearest.loss)}`;
  const isRight = x > width / 2;
  return [
    svg('line', { class: 'cross', x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }),
    svg('circle', { class: 'dot', cx: x, cy: y, r: 4 }),
    svg(
      'text',
      {
        class: 'reading',
        x: isRight ? x - 8 : x + 8,
        y: MARGIN.top + 12,
        'text-anchor': isRight ? 'end' : 'start',
      },
      text,
    ),
  ];
}

function describe(points) {
  const last = points.at(-1);
  return last === undefined ? 'loss, no step yet' : `loss ${formatLoss(last.loss)} at step ${last.step}`;
}
