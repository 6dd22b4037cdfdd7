import '../style/parallel.css';
import { axisOf } from './parallel.js';

interface PlotRow {
  id: string;
  name: string;
  /** Values by axis. */
  values: Readonly<Record<string, unknown>>;
  isBest: boolean;
}

interface ParallelPlotProps {
  label: string;
  /** Fields, the result last. */
  axes: readonly string[];
  rows: readonly PlotRow[];
}

const HEIGHT = 220;
/** Distance of axes: that of the longest text, at least. */
const GAP = { least: 105, letter: 7, space: 16 };
const MARGIN = { top: 28, bottom: 12, left: 20 };

/** A line per run over its values. The table beside it has the same values for readers of a screen. */
export function ParallelPlot({ label, axes, rows }: ParallelPlotProps) {
  const drawn = axes.map((name) =>
    axisOf(
      name,
      rows.map(({ values }) => values[name]),
    ),
  );
  const letters = drawn.flatMap(({ name, ticks }) => [
    name.length,
    ...ticks.map(({ label: text }) => text.length + 1),
  ]);
  const gap = Math.max(GAP.least, GAP.space + GAP.letter * Math.max(0, ...letters));
  const width = MARGIN.left + gap * axes.length;
  const x = (index: number) => MARGIN.left + gap * index;
  const y = (at: number) => HEIGHT - MARGIN.bottom - at * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const points = (row: number) =>
    drawn
      .flatMap(({ positions }, index) => {
        const at = positions[row];
        return at === null || at === undefined ? [] : [`${x(index)},${y(at)}`];
      })
      .join(' ');
  // The best line lies over the others.
  const order = rows
    .map((_, index) => index)
    .sort((a, b) => Number(rows[a]?.isBest) - Number(rows[b]?.isBest));
  return (
    <div class="scroll">
      <svg
        class="parallel"
        role="img"
        aria-label={label}
        width={width}
        height={HEIGHT}
        viewBox={`0 0 ${width} ${HEIGHT}`}
      >
        {order.map((index) => {
          const row = rows[index];
          return (
            row && (
              <polyline key={row.id} class={row.isBest ? 'best' : undefined} points={points(index)}>
                <title>{row.name}</title>
              </polyline>
            )
          );
        })}
        {drawn.map(({ name, ticks }, index) => (
          <g key={name} transform={`translate(${x(index)} 0)`}>
            <line y1={y(0)} y2={y(1)} />
            <text y={14} class="name">
              {name}
            </text>
            {ticks.map((tick) => (
              <text key={tick.at} x={8} y={y(tick.at) + 4}>
                {tick.label}
              </text>
            ))}
          </g>
        ))}
      </svg>
    </div>
  );
}
