import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import '../style/chart.css';
import { bytes } from './format.js';

interface ChartProps {
  label: string;
  /** Of each curve. */
  names: readonly string[];
  /** Steps, then the values of each curve. */
  data: readonly (readonly (number | null)[])[];
  logarithmic?: boolean;
  /** Steps that are marked, as of checkpoints. */
  marks?: readonly number[];
  format?: (value: number) => string;
  /** The values are bytes: the chart begins at 0, with ticks at multiples of powers of two. */
  ofBytes?: boolean;
}

const HEIGHT = 260;
const COLORS = 8;
const FONT = '12px system-ui';
/** Least width of the axis of values, and its part that is no text, in pixels. */
const AXIS_WIDTH = { least: 64, margin: 20 };

const colorOf = (style: CSSStyleDeclaration, index: number) =>
  style.getPropertyValue(`--curve-${(index % COLORS) + 1}`).trim();

/** Curves over steps. Dragging zooms, a double click shows all. */
export function Chart(props: ChartProps) {
  const { label, names, data, logarithmic = false, marks = [], ofBytes = false } = props;
  const unit = ofBytes ? BYTES : NUMBERS;
  const { format = unit.format } = props;
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const markers = useRef<readonly number[]>(marks);
  markers.current = marks;
  const shape = JSON.stringify([names, logarithmic]);
  // New data is set below; another shape is another chart.
  useEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue('--muted').trim();
    const line = { stroke: style.getPropertyValue('--line').trim(), width: 1 };
    const axis = { stroke: text, grid: line, ticks: line, font: FONT };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        scales: { x: { time: false }, y: logarithmic ? { distr: 3 } : unit.scale },
        axes: [axis, { ...axis, size: widthOf, ...unit.axis }],
        series: [
          { label: 'step' },
          ...names.map((name, index) => ({
            label: name,
            stroke: colorOf(style, index),
            width: 1.5,
            spanGaps: true,
            value: (_: uPlot, value: number | null) => (value === null ? '–' : format(value)),
            ...(name.startsWith('eval ') && { points: { show: true, size: 6 } }),
          })),
        ],
        hooks: { drawClear: [(plot) => drawMarks(plot, markers.current, line.stroke)] },
      },
      data as uPlot.AlignedData,
      element,
    );
    chart.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [shape]);
  useEffect(() => {
    const frame = requestAnimationFrame(() =>
      chart.current?.setData(data as uPlot.AlignedData, !isZoomed(chart.current)),
    );
    return () => cancelAnimationFrame(frame);
  }, [data]);
  return <div class="chart" role="img" aria-label={label} ref={holder} />;
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 4 });

/** Returns the width of an axis in pixels, of which the longest text needs more or less. */
function widthOf({ ctx }: uPlot, texts: readonly string[] | null): number {
  ctx.save();
  // Text is measured in pixels of the page.
  ctx.font = FONT;
  const widths = (texts ?? []).map((text) => ctx.measureText(text).width);
  ctx.restore();
  return Math.ceil(Math.max(AXIS_WIDTH.least, AXIS_WIDTH.margin + Math.max(0, ...widths)));
}

/** Ticks may be close to each other, far from 1. */
const tick = (value: number | null) =>
  value === null
    ? ''
    : Math.abs(value) >= 10_000
      ? COMPACT.format(value)
      : String(Number(value.toPrecision(5)));

interface Unit {
  scale: uPlot.Scale;
  axis: uPlot.Axis;
  format(value: number): string;
}

const NUMBERS: Unit = {
  scale: {},
  axis: { values: (_, ticks) => ticks.map(tick) },
  format: String,
};

const POWERS_OF_TWO = Array.from({ length: 60 }, (_, power) => 2 ** power);

/** From 0 on, with ticks at multiples of a power of two that one decimal writes exactly. */
const BYTES: Unit = {
  scale: { range: (_, _least, most) => [0, Math.max(1, most * 1.1)] },
  axis: {
    incrs: (_, _axis, _least, most) => {
      const unit = 1024 ** Math.floor(Math.log2(most) / 10);
      return POWERS_OF_TWO.filter((power) => 2 * power >= unit);
    },
    values: (_, ticks) => ticks.map((value) => (value === null ? '' : bytes(value))),
  },
  format: bytes,
};

/** Returns whether the chart is zoomed: new data then keeps the visible range. */
function isZoomed({ scales: { x }, data: [steps = []] }: uPlot): boolean {
  const [first, last] = [steps[0], steps.at(-1)];
  if (x === undefined || first == null || last == null || x.min == null || x.max == null) return false;
  return x.min > first || x.max < last - (last - first) * 0.02;
}

function drawMarks({ ctx, bbox, valToPos }: uPlot, marks: readonly number[], color: string): void {
  ctx.save();
  ctx.strokeStyle = color;
  ctx.setLineDash([4, 4]);
  for (const step of marks) {
    const x = Math.round(valToPos(step, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
