/** Range of a number in a `config.json`. */
export interface Range {
  min?: number;
  max?: number;
  /** Exclusive bounds. */
  above?: number;
  below?: number;
}

export function isWithin(value: number, { min, max, above, below }: Range): boolean {
  return (
    value >= (min ?? -Infinity) &&
    value <= (max ?? Infinity) &&
    value > (above ?? -Infinity) &&
    value < (below ?? Infinity)
  );
}

/** Describes a range, after the type of its numbers. */
export function rangeText(type: string, { min, max, above, below }: Range): string {
  const bounds = [
    min === undefined ? '' : `≥ ${min}`,
    above === undefined ? '' : `> ${above}`,
    max === undefined ? '' : `≤ ${max}`,
    below === undefined ? '' : `< ${below}`,
  ];
  return [type, bounds.filter(Boolean).join(', ')].filter(Boolean).join(' ');
}
