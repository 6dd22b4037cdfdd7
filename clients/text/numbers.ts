/** Numbers, times and names as people read them, at a terminal and in a browser. */

const COUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Stands for a value that there is not. */
export const NONE = '–';

export const count = (value: number | null) => (value === null ? NONE : COUNT.format(value));

/** `512 B`, `1.4 MB`: powers of 1,000, as disks and networks count. */
export function bytes(value: number): string {
  let scaled = value;
  let unit = 0;
  for (; scaled >= 999.5 && unit < UNITS.length - 1; unit += 1) scaled /= 1000;
  return `${scaled.toFixed(unit === 0 || scaled >= 99.95 ? 0 : 1)} ${UNITS[unit]}`;
}

/** `45 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`. */
export function duration(seconds: number | null): string {
  if (seconds === null) return NONE;
  const whole = Math.round(seconds);
  const parts: [number, string][] = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  const first = parts.findIndex(([number]) => number > 0);
  return parts
    .slice(first, first < 0 ? undefined : first + 2)
    .map(([number, unit]) => `${number} ${unit}`)
    .join(' ');
}

/** `1 rank`, `3 ranks`. */
export const ranks = (num: number) => (num === 1 ? '1 rank' : `${num} ranks`);

/** A name of a document or an event, in words. */
export const words = (name: string) => name.replaceAll(/[_.]/g, ' ');

/** A share of a whole, 0 to 1. */
export const portion = (share: number) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
