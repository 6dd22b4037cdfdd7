/** The runs of a sweep: combinations of values, names and documents. Pure and deterministic. */
import { createHash } from 'node:crypto';
import {
  type FieldError,
  type JobSpec,
  mergePatch,
  type SweepRange,
  type SweepSpec,
  type SweepValue,
} from '../../contracts/index.js';

const MAX_RUNS = 100;
/** Draws per run before the space counts as exhausted. */
const DRAWS_PER_RUN = 50;
const DIGITS = 4;
const MAX_NAME = 100;

export type Values = Record<string, SweepValue>;

export interface PlannedRun {
  name: string;
  values: Values;
  document: JobSpec;
}

/**
 * Plans the runs of a sweep.
 * @param labels labels to add to each document
 * @returns errors of the space with pointers into the request; without any, at least one run
 */
export function planRuns(
  sweep: SweepSpec,
  labels: Record<string, string>,
): { runs: PlannedRun[]; errors: FieldError[] } {
  const { spec, space, name = spec.name ?? '' } = sweep;
  const fields = Object.entries(space);
  const errors = fields.flatMap(([field, range]) => rangeErrors(field, range));
  const { combinations, error } = errors.length > 0 ? NONE : combinationsOf(sweep, fields);
  if (error !== null) errors.push(error);
  const runs = combinations.map((values) => {
    const named = nameOf(name, values);
    const document = mergePatch(mergePatch(spec, patchOf(values)), { name: named, labels });
    return { name: named, values, document: document as JobSpec };
  });
  return { runs, errors };
}

type Fields = [field: string, range: SweepRange][];

interface Combinations {
  combinations: Values[];
  error: FieldError | null;
}

const NONE: Combinations = { combinations: [], error: null };

function combinationsOf(sweep: SweepSpec, fields: Fields): Combinations {
  const { method = 'grid', runs } = sweep;
  const isDrawn = method === 'random' || (method === 'successive_halving' && runs !== undefined);
  if (!isDrawn) return grid(fields);
  if (runs === undefined) {
    const message = 'runs: set the number of runs to draw';
    return { combinations: [], error: { pointer: '/runs', code: 'sweep_runs_missing', message } };
  }
  return drawn(fields, runs, sweep.seed ?? 0);
}

function grid(fields: Fields): Combinations {
  const open = fields.find(([, { values }]) => values === undefined);
  if (open !== undefined) {
    const message = `${open[0]}: a grid needs values, or set method to random and runs to a number`;
    return {
      combinations: [],
      error: { pointer: pointerOf(open[0]), code: 'sweep_values_missing', message },
    };
  }
  const count = fields.reduce((product, [, { values = [] }]) => product * values.length, 1);
  if (count > MAX_RUNS) {
    const message = `the space has ${count} combinations; a sweep has at most ${MAX_RUNS} runs: remove values, or set method to random`;
    return { combinations: [], error: { pointer: '/space', code: 'sweep_too_many_runs', message } };
  }
  const combinations = fields.reduce<Values[]>(
    (before, [field, { values = [] }]) =>
      before.flatMap((chosen) => values.map((value) => ({ ...chosen, [field]: value }))),
    [{}],
  );
  return { combinations, error: null };
}

/** Draws distinct combinations. */
function drawn(fields: Fields, runs: number, seed: number): Combinations {
  const found = new Map<string, Values>();
  for (let draw = 0; draw < runs * DRAWS_PER_RUN && found.size < runs; draw += 1) {
    const values = Object.fromEntries(
      fields.map(([field, range]) => [field, valueAt(range, fraction(`${seed}/${draw}/${field}`))]),
    );
    found.set(JSON.stringify(values), values);
  }
  const combinations = [...found.values()];
  if (combinations.length === runs) return { combinations, error: null };
  const most = String(combinations.length);
  const message = `the space has too few combinations for ${runs} different runs`;
  const error = { pointer: '/runs', code: 'sweep_too_few_values', message, suggestion: most } as const;
  return { combinations: [], error };
}

/** Returns a uniform number of [0, 1) that depends on nothing but the text. */
function fraction(text: string): number {
  return createHash('sha256').update(text).digest().readUIntBE(0, 6) / 2 ** 48;
}

function valueAt({ values, min = 0, max = 0, scale = 'linear' }: SweepRange, share: number): SweepValue {
  if (values !== undefined) return values[Math.floor(share * values.length)] ?? null;
  if (scale === 'integer') return Math.ceil(min) + Math.floor(share * integersIn(min, max));
  const exact = scale === 'log' ? min * (max / min) ** share : min + share * (max - min);
  return Math.min(max, Math.max(min, Number(exact.toPrecision(DIGITS))));
}

const integersIn = (min: number, max: number) => Math.floor(max) - Math.ceil(min) + 1;

function rangeErrors(field: string, { values, min = 0, max = 0, scale }: SweepRange): FieldError[] {
  if (values !== undefined) return [];
  const isEmpty =
    scale === 'integer'
      ? integersIn(min, max) < 1 ||
        !Number.isSafeInteger(Math.ceil(min)) ||
        !Number.isSafeInteger(Math.floor(max))
      : min >= max || (scale === 'log' && min <= 0);
  const rule =
    scale === 'log' ? '0 < min < max' : scale === 'integer' ? 'an integer between min and max' : 'min < max';
  const message = `${field}: the range needs ${rule} (got ${min} to ${max})`;
  return isEmpty ? [{ pointer: pointerOf(field), code: 'sweep_range_empty', message }] : [];
}

/** Returns the names in a dotted path. */
export function namesIn(field: string): string[] {
  return field.split(/(?<!\\)\./).map((name) => name.replaceAll('\\.', '.'));
}

/** Returns the pointer of a field of the space in the request. */
export function pointerOf(field: string): string {
  return `/space/${escaped(field)}`;
}

export function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function patchOf(values: Values): unknown {
  return Object.entries(values).reduce<unknown>((patch, [field, value]) => {
    const change = namesIn(field).reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
    return merged(patch, change);
  }, {});
}

/** Merges two patches; unlike in a document, null stays. */
function merged(a: unknown, b: unknown): unknown {
  if (!isObject(a) || !isObject(b)) return b;
  const both = Object.entries(b).map(([name, value]) => [name, name in a ? merged(a[name], value) : value]);
  return { ...a, ...Object.fromEntries(both) };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** Names a run by its values, with the shortest names of fields that are unique. */
function nameOf(name: string, values: Values): string {
  const fields = Object.keys(values);
  const last = (field: string) => namesIn(field).at(-1) ?? field;
  const shown = fields.map((field) => {
    const isUnique = fields.filter((other) => last(other) === last(field)).length === 1;
    return `${isUnique ? last(field) : field}=${values[field]}`;
  });
  return [name, ...shown].join(' ').trim().slice(0, MAX_NAME).trim();
}
