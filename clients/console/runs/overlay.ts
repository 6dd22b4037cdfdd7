import type { CurvePoint } from '../run/charts/curve.js';

/** Columns of one value of several runs over the steps of all of them; null where a run has no such step. */
export function overlaid(
  runs: readonly (readonly Pick<CurvePoint, 'step' | 'values'>[])[],
  name: string,
): (number | null)[][] {
  const tables = runs.map(
    (points) => new Map(points.map(({ step, values }) => [step, values[name] ?? null])),
  );
  const steps = [...new Set(tables.flatMap((table) => [...table.keys()]))].sort((a, b) => a - b);
  return [steps, ...tables.map((table) => steps.map((step) => table.get(step) ?? null))];
}
