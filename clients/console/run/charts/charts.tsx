import { useMemo } from 'preact/hooks';
import { Chart } from '../../parts/chart.js';
import { AXES, type AxisName, positionsOf } from '../../parts/chart-axes.js';
import { words } from '../../parts/format.js';
import { useStored } from '../../parts/stored.js';
import type { LiveRun } from '../live-run.js';
import { type ChartGroup, GROUPS } from './chart-groups.js';
import { type CurvePoint, columnsOf, namesIn } from './curve.js';

export function Charts({ run }: { run: LiveRun }) {
  const smoothing = useStored('charts.smoothing', 0);
  const logarithmic = useStored('charts.logarithmic', false);
  const points = run.points.value ?? [];
  const names = useMemo(() => namesIn(points), [points]);
  const axis = useStored<AxisName>('charts.axis', 'step');
  const marks = positionsOf(
    axis.value,
    points,
    (run.checkpoints.value ?? []).map(({ step }) => step),
  );
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
          By
          <select
            value={axis.value}
            onChange={(event) => (axis.value = event.currentTarget.value as AxisName)}
          >
            {Object.keys(AXES).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
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
          const shown = names
            .filter(group.has)
            .filter((name) => points.some(({ values }) => (values[name] ?? group.quiet) !== group.quiet));
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
                axis={axis.value}
              />
            </section>
          );
        })}
      </div>
    </>
  );
}

interface GroupChartProps {
  group: ChartGroup;
  names: readonly string[];
  points: readonly CurvePoint[];
  marks: readonly number[];
  smoothing: number;
  logarithmic: boolean;
  axis: AxisName;
}

function GroupChart({ group, names, points, marks, smoothing, logarithmic, axis }: GroupChartProps) {
  const deps = [points, names.join(), logarithmic, axis];
  const data = useMemo(
    () => columnsOf(points, names, { smoothing, logarithmic, axis }),
    [...deps, smoothing],
  );
  const raw = useMemo(
    () => (smoothing > 0 ? columnsOf(points, names, { logarithmic, axis }) : null),
    [...deps, smoothing > 0],
  );
  return (
    <Chart
      label={`${group.title} by ${axis}`}
      names={names.map((name) => words(group.label?.(name) ?? name))}
      data={data}
      raw={raw}
      axis={axis}
      logarithmic={logarithmic}
      marks={marks}
      unit={group.unit ?? 'number'}
      group="charts of a run"
      {...(group.format && { format: group.format })}
    />
  );
}
