import { InvalidArgumentError, Option } from 'commander';

/** A whole number of at least one. */
export function count(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError('It must be a whole number of at least 1.');
}

/** A whole number, including zero. */
export function whole(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= 0) return value;
  throw new InvalidArgumentError('It must be a whole number.');
}

export function number(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('It must be a number.');
}

/** An option with one of these values. */
export const choice = (flags: string, description: string, values: readonly string[]): Option =>
  new Option(flags, description).choices(values);

/** An option that may be repeated. */
export const several = (text: string, before: string[] = []): string[] => [...before, text];
