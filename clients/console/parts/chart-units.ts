/** Units of the values of a chart. */
import type uPlot from 'uplot';
import { WHOLE } from './chart-axes.js';
import { bytes } from './format.js';

export type UnitName = 'number' | 'whole' | 'bytes';

interface Unit {
  scale: uPlot.Scale;
  axis: uPlot.Axis;
  format(value: number): string;
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 4 });

/** Ticks may be close to each other, far from 1. */
const tick = (value: number | null) =>
  value === null
    ? ''
    : Math.abs(value) >= 10_000
      ? COMPACT.format(value)
      : String(Number(value.toPrecision(5)));

/** Counts and bytes begin at 0, and have ticks at whole numbers. */
const fromZero: uPlot.Scale = { range: (_, _least, most) => [0, Math.max(1, most * 1.1)] };

export const UNITS: Readonly<Record<UnitName, Unit>> = {
  number: { scale: {}, axis: { values: (_, ticks) => ticks.map(tick) }, format: String },
  whole: {
    scale: fromZero,
    axis: { incrs: [...WHOLE], values: (_, ticks) => ticks.map(tick) },
    format: String,
  },
  bytes: {
    scale: fromZero,
    axis: {
      incrs: [...WHOLE],
      values: (_, ticks) => ticks.map((value) => (value === null ? '' : bytes(value))),
    },
    format: bytes,
  },
};
