/** Quantities along the horizontal axis of charts. */
import { compact, count, duration } from './format.js';

export type AxisName = 'step' | 'tokens' | 'time';

/** Coordinates of a point. */
export interface Placed {
  step: number;
  /** So far. */
  tokens: number;
  /** Unix time in milliseconds. */
  at: number;
}

interface XAxis {
  /** Returns the positions of points, ascending. */
  positions(points: readonly Placed[]): number[];
  format(value: number): string;
  /** Distances that ticks may have. */
  increments: readonly number[];
}

const POWERS = Array.from({ length: 16 }, (_, power) => 10 ** power);
/** Round distances of whole numbers. */
export const WHOLE: readonly number[] = POWERS.flatMap((power) => [power, 2 * power, 5 * power]);
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const SPANS = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  ...WHOLE.map((days) => days * DAY),
];

export const AXES: Readonly<Record<AxisName, XAxis>> = {
  step: { positions: (points) => points.map(({ step }) => step), format: count, increments: WHOLE },
  tokens: { positions: (points) => points.map(({ tokens }) => tokens), format: compact, increments: WHOLE },
  time: { positions: secondsOf, format: duration, increments: SPANS },
};

/** Seconds since the first point. The clocks of two workers may differ, so time never goes back. */
function secondsOf(points: readonly Placed[]): number[] {
  const first = points[0]?.at ?? 0;
  let last = 0;
  return points.map(({ at }) => {
    last = Math.max(last, (at - first) / 1000);
    return last;
  });
}

/** Returns the positions of some steps: those of the first points that are as far. */
export function positionsOf(axis: AxisName, points: readonly Placed[], steps: readonly number[]): number[] {
  if (axis === 'step') return [...steps];
  const positions = AXES[axis].positions(points);
  return steps.flatMap((step) => {
    const at = points.findIndex((point) => point.step >= step);
    return at < 0 ? [] : [positions[at] as number];
  });
}
