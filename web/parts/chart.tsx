import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import '../style/chart.css';

export interface ChartProps {
  label: string;
  /** Of each curve. */
  names: readonly string[];
  /** Steps, then the values of each curve. */
  data: readonly (readonly (number | null)[])[];
  logarithmic?: boolean;
  /** Steps that are marked, as of checkpoints. */
  marks?: readonly number[];
  format?: (value: number) => string;
}

const HEIGHT = 260;
const COLORS = 8;

const colorOf = (style: CSSStyleDeclaration, index: number) =>
  style.getPropertyValue(`--curve-${(index % COLORS) + 1}`).trim();

/** Curves over steps. Dragging zooms, a double click shows all. */
export function Chart({ label, names, data, logarithmic = false, marks = [], format = String }: ChartProps) {
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
    const axis = { stroke: text, grid: line, ticks: line, font: '12px system-ui' };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        scales: { x: { time: false }, y: { distr: logarithmic ? 3 : 1 } },
        axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(tick) }],
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

/** Ticks may be close to each other, far from 1. */
const tick = (value: number | null) =>
  value === null
    ? ''
    : Math.abs(value) >= 10_000
      ? COMPACT.format(value)
      : String(Number(value.toPrecision(5)));

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
