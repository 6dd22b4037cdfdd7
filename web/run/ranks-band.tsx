import { clock, duration, ranks as ranksText } from '../parts/format.js';
import type { CurvePoint } from './curve.js';
import { type Period, periodsOf } from './periods.js';

const HEIGHT = 40;

/** Ranks over time: a bar for each period, as high as its number of ranks; no bar while no rank trained. */
export function RanksBand({ points, max }: { points: readonly CurvePoint[]; max: number }) {
  const periods = periodsOf(points);
  const [first, last] = [periods[0], periods.at(-1)];
  if (first === undefined || last === undefined) return null;
  const total = Math.max(1, last.to - first.from);
  const percent = (ms: number) => `${(100 * ms) / total}%`;
  return (
    <section class="card" aria-label="Ranks over time">
      <h2>Ranks over time</h2>
      <svg class="band" role="img" aria-label={periods.map(describe).join('; ')} height={HEIGHT}>
        {periods.map((period) => {
          const height = (HEIGHT * period.ranks) / Math.max(max, period.ranks);
          return (
            <rect
              key={period.from}
              x={percent(period.from - first.from)}
              width={percent(Math.max(total / 500, period.to - period.from))}
              y={HEIGHT - height}
              height={height}
            >
              <title>{describe(period)}</title>
            </rect>
          );
        })}
      </svg>
      <p class="ends muted small">
        <span>{clock(new Date(first.from).toISOString())}</span>
        <span>
          {ranksText(last.ranks)} at last, at most {max}
        </span>
        <span>{clock(new Date(last.to).toISOString())}</span>
      </p>
    </section>
  );
}

const describe = ({ from, to, ranks }: Period) =>
  `${ranksText(ranks)} from ${clock(new Date(from).toISOString())} for ${duration((to - from) / 1000)}`;
