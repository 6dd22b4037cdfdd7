import { clock, duration, ranks as ranksText } from '../../parts/format.js';
import { gathered, type Period } from './periods.js';

const HEIGHT = 40;
const BARS = 500;
const DESCRIBED = 20;

/** Ranks over time: a bar for each period, as high as its number of ranks; no bar while no rank trained. */
export function RanksBand({ periods: all, max }: { periods: readonly Period[]; max: number }) {
  const periods = gathered(all, BARS);
  const [first, last] = [periods[0], periods.at(-1)];
  if (first === undefined || last === undefined) return null;
  const total = Math.max(1, last.to - first.from);
  const percent = (ms: number) => `${(100 * ms) / total}%`;
  return (
    <section class="card" aria-label="Ranks over time">
      <h2>Ranks over time</h2>
      <svg class="band" role="img" aria-label={inWords(all)} height={HEIGHT}>
        {periods.map((period) => {
          const height = (HEIGHT * period.ranks) / Math.max(max, period.ranks);
          // A short period is seen, also at the end.
          const width = Math.max(total / BARS, period.to - period.from);
          return (
            <rect
              key={period.from}
              x={percent(Math.min(period.from - first.from, total - width))}
              width={percent(width)}
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

function inWords(periods: readonly Period[]): string {
  if (periods.length <= DESCRIBED) return periods.map(describe).join('; ');
  const numbers = periods.map(({ ranks }) => ranks);
  return `${periods.length} periods of ${Math.min(...numbers)} to ${ranksText(Math.max(...numbers))}`;
}

const describe = ({ from, to, ranks }: Period) =>
  `${ranksText(ranks)} from ${clock(new Date(from).toISOString())} for ${duration((to - from) / 1000)}`;
