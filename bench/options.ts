import { parseArgs } from 'node:util';

/** An option of a benchmark: its default and its parser. */
interface Option<Value> {
  default: string;
  /** Throws an Error with the valid values. */
  parse: (text: string) => Value;
  /** True for an option without a value. */
  isSwitch?: true;
}

type Values<Options> = { [Name in keyof Options]: Options[Name] extends Option<infer Value> ? Value : never };

/** A positive whole number. */
export const count = (value: number): Option<number> => ({ default: String(value), parse: positive });

/** A whole number, 0 included. */
export const countOrNone = (value: number): Option<number> => ({
  default: String(value),
  parse: (text) => (text === '0' ? 0 : positive(text)),
});

/** Comma-separated positive whole numbers. */
export const counts = (...values: number[]): Option<number[]> => ({
  default: values.join(','),
  parse: (text) => text.split(',').map(positive),
});

/** A switch: `--name` without a value turns it on. */
export const onOff = (): Option<boolean> => ({
  default: 'false',
  parse: (text) => text === 'true',
  isSwitch: true,
});

/** A text, or null without the option. */
export const text = (): Option<string | null> => ({ default: '', parse: (given) => given || null });

/** A path, or null without the option. */
export const path = text;

/** A positive whole number, or null without the option. */
export const optionalCount = (): Option<number | null> => ({
  default: '',
  parse: (text) => (text === '' ? null : positive(text)),
});

/** One of several names. */
export const oneOf = <Name extends string>(names: readonly Name[], value: NoInfer<Name>): Option<Name> => ({
  default: value,
  parse: (text) => known(names, text),
});

/** Comma-separated names of a list, or `all`. */
export const someOf = <Name extends string>(
  names: readonly Name[],
  value: NoInfer<Name> | 'all',
): Option<readonly Name[]> => ({
  default: value,
  parse: (text) => (text === 'all' ? names : text.split(',').map((name) => known(names, name))),
});

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`'${text}' is not a positive whole number`);
  return value;
}

function known<Name extends string>(names: readonly Name[], text: string): Name {
  const found = names.find((name) => name === text);
  if (found === undefined) throw new Error(`'${text}' is none of ${names.join(', ')}`);
  return found;
}

/** Name of an option on the command line. */
const dashed = (name: string) => name.replaceAll('_', '-');

/**
 * Parses `--name value` for each of `options`, `some-name` as its field some_name. Throws an Error with the valid
 * options for anything else.
 */
export function readOptions<Options extends Record<string, Option<unknown>>>(
  options: Options,
  args: string[],
): Values<Options> {
  const types = Object.fromEntries(
    Object.entries(options).map(([name, { isSwitch }]) => [
      dashed(name),
      { type: isSwitch ? ('boolean' as const) : ('string' as const) },
    ]),
  );
  const values: Record<string, unknown> = parseArgs({ args, options: types }).values;
  const read = ([name, option]: [string, Option<unknown>]) => {
    const given = values[dashed(name)];
    try {
      return [name, option.parse(given === undefined ? option.default : String(given))];
    } catch (error) {
      throw new Error(`--${dashed(name)}: ${(error as Error).message}`);
    }
  };
  return Object.fromEntries(Object.entries(options).map(read)) as Values<Options>;
}

/** Options of the command line; an invalid one ends the process with exit code 2 and the valid options. */
export function benchOptions<Options extends Record<string, Option<unknown>>>(
  options: Options,
): Values<Options> {
  try {
    return readOptions(options, process.argv.slice(2));
  } catch (error) {
    const defaults = Object.entries(options).map(([name, option]) =>
      option.isSwitch ? `[--${dashed(name)}]` : `[--${dashed(name)} ${option.default || '…'}]`,
    );
    process.stderr.write(`${(error as Error).message}\noptions: ${defaults.join(' ')}\n`);
    process.exit(2);
  }
}
