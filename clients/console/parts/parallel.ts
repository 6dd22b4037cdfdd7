/** Parallel coordinates: one axis per field, one line per run. */

export interface Axis {
  name: string;
  ticks: { at: number; label: string }[];
  /** Positions of the rows, 0 (bottom) to 1; null for a row without a value. */
  positions: (number | null)[];
}

/** Numbers that span more than this factor have a logarithmic axis. */
const LOGARITHMIC = 20;
const DIGITS = 4;
const MIDDLE = 0.5;
/** Characters of a word, of which the rest would lie over the next axis. */
const LETTERS = 16;

/** @param values of the rows: numbers, or words, which get one place each */
export function axisOf(name: string, values: readonly unknown[]): Axis {
  const present = values.filter((value) => value !== undefined && value !== null);
  return present.every((value) => typeof value === 'number')
    ? ofNumbers(name, values as readonly (number | null | undefined)[])
    : ofWords(name, values);
}

function ofNumbers(name: string, values: readonly (number | null | undefined)[]): Axis {
  const known = values.filter((value) => typeof value === 'number' && Number.isFinite(value)) as number[];
  const [min, max] = [Math.min(...known), Math.max(...known)];
  const isLogarithmic = min > 0 && max / min > LOGARITHMIC;
  const scaled = (value: number) => (isLogarithmic ? Math.log(value) : value);
  const span = scaled(max) - scaled(min);
  const at = (value: number) => (span > 0 ? (scaled(value) - scaled(min)) / span : MIDDLE);
  const shown = [...new Set(known)].length <= 5 ? known : [min, max];
  return {
    name,
    ticks: [...new Set(shown)].map((value) => ({
      at: at(value),
      label: String(Number(value.toPrecision(DIGITS))),
    })),
    positions: values.map((value) =>
      typeof value === 'number' && Number.isFinite(value) ? at(value) : null,
    ),
  };
}

function ofWords(name: string, values: readonly unknown[]): Axis {
  const texts = values.map((value) => (value === undefined || value === null ? null : String(value)));
  const words = [...new Set(texts.filter((text) => text !== null))].sort();
  const at = (text: string) => (words.length > 1 ? words.indexOf(text) / (words.length - 1) : MIDDLE);
  return {
    name,
    ticks: words.map((word) => ({ at: at(word), label: shortened(word) })),
    positions: texts.map((text) => (text === null ? null : at(text))),
  };
}

const shortened = (word: string) => (word.length > LETTERS ? `${word.slice(0, LETTERS - 1)}…` : word);
