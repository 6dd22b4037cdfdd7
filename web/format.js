/** Numbers and times as people read them. */

const COUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** @param {number | null} value */
export const count = (value) => (value === null ? '–' : COUNT.format(value));

/** @param {number | null} value */
export const compact = (value) => (value === null ? '–' : COMPACT.format(value));

/** @param {number | null} value */
export const loss = (value) => (value === null ? '–' : value.toFixed(4));

/** @param {number} value in bytes */
export function bytes(value) {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10));
  const scaled = value / 1024 ** unit;
  return `${scaled.toFixed(unit === 0 || scaled >= 100 ? 0 : 1)} ${UNITS[unit]}`;
}

/** @param {number | null} seconds */
export function duration(seconds) {
  if (seconds === null) return '–';
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

/** Returns the age of a time, or its date if it is more than a day ago. @param {string} time RFC 3339 */
export function ago(time) {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (seconds < 60) return 'just now';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString();
}

/** Time of day. @param {string} time RFC 3339 */
export const clock = (time) => new Date(time).toLocaleTimeString([], { hour12: false });

/** @param {number} num */
export const ranks = (num) => (num === 1 ? '1 rank' : `${num} ranks`);
