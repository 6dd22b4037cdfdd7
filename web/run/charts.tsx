import { useMemo } from 'preact/hooks';
import { Chart } from '../parts/chart.js';
import { compact, words } from '../parts/format.js';
import { useStored } from '../parts/stored.js';
import { type CurvePoint, columnsOf, namesIn, PHASES } from './curve.js';
import type { LiveRun } from './live-run.js';

interface Group {
  title: string;
  has(name: string): boolean;
  format?: (value: number) => string;
  ofBytes?: boolean;
}

const only = (wanted: string) => (name: string) => name === wanted;
const digits = (value: number) => value.toPrecision(4);

const GROUPS: readonly Group[] = [
  { title: 'Loss', has: (name) => name === 'loss' || name.startsWith('eval '), format: digits },
  { title: 'Rate', has: only('lr'), format: digits },
  { title: 'Gradient norm', has: only('grad_norm'), format: digits },
  { title: 'Tokens per second', has: only('tokens_per_second'), format: compact },
  { title: 'Seconds of a step', has: (name) => (PHASES as readonly string[]).includes(name), format: digits },
  { title: 'Memory', has: only('memory'), ofBytes: true },
  { title: 'Ranks', has: only('ranks') },
  { title: 'Loss scale', has: only('loss_scale'), format: compact },
];

export function Charts({ run }: { run: LiveRun }) {
  const smoothing = useStored('charts.smoothing', 0);
  const logarithmic = useStored('charts.logarithmic', false);
  const points = run.points.value ?? [];
  const names = useMemo(() => namesIn(points), [points]);
  const marks = (run.checkpoints.value ?? []).map(({ step }) => step);
  if (points.length === 0)
    return <p class="muted">{run.points.value === null ? '…' : 'No step is done yet.'}</p>;
  return (
    <>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Smoothing
          <input
            type="range"
            min={0}
            max={0.99}
            step={0.01}
            value={smoothing.value}
            onInput={(event) => (smoothing.value = Number(event.currentTarget.value))}
          />
        </label>
        <label>
          <input
            type="checkbox"
            checked={logarithmic.value}
            onChange={(event) => (logarithmic.value = event.currentTarget.checked)}
          />
          Logarithmic
        </label>
        <span class="muted small">Drag to zoom, double-click for all.</span>
      </form>
      <div class="columns">
        {GROUPS.map((group) => {
          const shown = names.filter(group.has);
          if (shown.length === 0) return null;
          return (
            <section key={group.title} class="card">
              <h2>{group.title}</h2>
              <GroupChart
                group={group}
                names={shown}
                points={points}
                marks={marks}
                smoothing={smoothing.value}
                logarithmic={logarithmic.value}
              />
            </section>
          );
        })}
      </div>
    </>
  );
}

interface GroupChartProps {
  group: Group;
  names: readonly string[];
  points: readonly CurvePoint[];
  marks: readonly number[];
  smoothing: number;
  logarithmic: boolean;
}

function GroupChart({ group, names, points, marks, smoothing, logarithmic }: GroupChartProps) {
  const data = useMemo(
    () => columnsOf(points, names, { smoothing, logarithmic }),
    [points, names.join(), smoothing, logarithmic],
  );
  return (
    <Chart
      label={`${group.title} by step`}
      names={names.map(words)}
      data={data}
      logarithmic={logarithmic}
      marks={marks}
      ofBytes={group.ofBytes ?? false}
      {...(group.format && { format: group.format })}
    />
  );
}
