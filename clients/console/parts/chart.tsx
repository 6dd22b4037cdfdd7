import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import '../style/chart.css';
import { AXES, type AxisName } from './chart-axes.js';
import { UNITS, type UnitName } from './chart-units.js';
import { isDark } from './scheme.js';

interface ChartProps {
  label: string;
  /** Of each curve. */
  names: readonly string[];
  /** Places on the horizontal axis, then the values of each curve. */
  data: readonly (readonly (number | null)[])[];
  /** The same before smoothing; drawn faint under the curves. */
  raw?: readonly (readonly (number | null)[])[] | null;
  axis?: AxisName;
  logarithmic?: boolean;
  /** Places that are marked, as of checkpoints. */
  marks?: readonly number[];
  format?: (value: number) => string;
  unit?: UnitName;
  /** Charts of one group have one crosshair, and are zoomed together. */
  group?: string;
}

const HEIGHT = 260;
const COLORS = 8;
const FONT = '12px system-ui';
/** Hexadecimal digits of the opacity of a curve before smoothing. */
const FAINT = '55';
/** Least width of the axis of values, and its part that is no text, in pixels. */
const AXIS_WIDTH = { least: 64, margin: 20 };

const colorOf = (style: CSSStyleDeclaration, index: number) =>
  style.getPropertyValue(`--curve-${(index % COLORS) + 1}`).trim();

/** Curves over steps, tokens or time. Dragging zooms, a double click shows all. */
export function Chart(props: ChartProps) {
  const { label, names, data, raw = null, axis = 'step', logarithmic = false, marks = [], group } = props;
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const markers = useRef<readonly number[]>(marks);
  markers.current = marks;
  const shape = JSON.stringify([names, raw !== null, axis, logarithmic, group, isDark.value]);
  const columns = useMemo(
    () => [...data.slice(0, 1), ...(raw?.slice(1) ?? []), ...data.slice(1)] as uPlot.AlignedData,
    [data, raw],
  );
  // New data is set below; another shape is another chart.
  useEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const size = () => ({ width: element.clientWidth, height: HEIGHT });
    const made = new uPlot({ ...size(), ...optionsOf(props, markers) }, columns, element);
    chart.current = made;
    const observer = new ResizeObserver(() => made.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [shape]);
  useEffect(() => {
    const frame = requestAnimationFrame(() => chart.current?.setData(columns, !isZoomed(chart.current)));
    return () => cancelAnimationFrame(frame);
  }, [columns]);
  return <div class="chart" role="img" aria-label={label} ref={holder} />;
}

function optionsOf(
  { names, raw, axis = 'step', logarithmic = false, unit: unitName = 'number', format, group }: ChartProps,
  markers: { current: readonly number[] },
): Omit<uPlot.Options, 'width' | 'height'> {
  const style = getComputedStyle(document.documentElement);
  const line = { stroke: style.getPropertyValue('--line').trim(), width: 1 };
  const look = { stroke: style.getPropertyValue('--muted').trim(), grid: line, ticks: line, font: FONT };
  const unit = UNITS[unitName];
  const card = style.getPropertyValue('--card').trim();
  const { format: placeText, increments } = AXES[axis];
  const textOf = (write: (value: number) => string) => (_: uPlot, value: number | null) =>
    value === null ? '' : write(value);
  const faint = names.map((label, index) => ({
    label,
    class: 'raw',
    stroke: colorOf(style, index) + FAINT,
    width: 1,
    spanGaps: true,
    points: { show: false },
  }));
  const curves = names.map((label, index) => ({
    label,
    stroke: colorOf(style, index),
    width: 1.5,
    spanGaps: true,
    value: textOf(format ?? unit.format),
    points: { fill: card, ...(label.startsWith('eval ') && { show: true, size: 6 }) },
  }));
  return {
    scales: { x: { time: false }, y: logarithmic ? { distr: 3 } : unit.scale },
    axes: [
      { ...look, incrs: [...increments], values: (_, ticks) => ticks.map(placeText) },
      { ...look, size: widthOf, ...unit.axis },
    ],
    series: [{ label: axis, value: textOf(placeText) }, ...(raw ? faint : []), ...curves],
    ...(group !== undefined && { cursor: { sync: { key: group, scales: ['x', null] } } }),
    hooks: { drawClear: [(plot) => drawMarks(plot, markers.current, line.stroke)] },
  };
}

/** Returns the width of an axis in pixels, of which the longest text needs more or less. */
function widthOf({ ctx }: uPlot, texts: readonly string[] | null): number {
  ctx.save();
  // Text is measured in pixels of the page.
  ctx.font = FONT;
  const widths = (texts ?? []).map((text) => ctx.measureText(text).width);
  ctx.restore();
  return Math.ceil(Math.max(AXIS_WIDTH.least, AXIS_WIDTH.margin + Math.max(0, ...widths)));
}

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
