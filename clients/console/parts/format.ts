/** Numbers and times as people read them. */

import { signal } from '@preact/signals';
import type { Job } from '../../../contracts/types.js';
import { NONE } from '../../text/numbers.js';

export { bytes, count, duration, portion, ranks, words } from '../../text/numbers.js';

type Progress = Job['progress'];

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const compact = (value: number | null) => (value === null ? NONE : COMPACT.format(value));

export const loss = (value: number | null) => (value === null ? NONE : value.toFixed(4));

/** The loss of a run so far: `NaN` once steps are done and it is none, which JSON does not have. */
export const lossOf = ({ step, loss: value }: Pick<Progress, 'step' | 'loss'>) =>
  value === null && step > 0 ? 'NaN' : loss(value);

/** ISO 4217 code of the currency of all costs; null shows numbers alone. */
export const currency = signal<string | null>(null);

export const cost = (value: number) => [value.toFixed(2), currency.value ?? ''].join(' ').trim();

/**
 * Returns the age of a time, or its date if it is more than a day ago. @param time RFC 3339 @param now Unix time in
 * milliseconds
 */
export function ago(time: string, now = Date.now()): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  if (seconds < 60) return 'just now';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString();
}

/** Date and time of day. @param time RFC 3339 */
export const dateTime = (time: string) => new Date(time).toLocaleString([], { hour12: false });

/** Time of day, with the date of another day than today. @param time RFC 3339 @param now Unix time in milliseconds */
export function clock(time: string, now = Date.now()): string {
  const at = new Date(time);
  const isToday = at.toDateString() === new Date(now).toDateString();
  return isToday ? at.toLocaleTimeString([], { hour12: false }) : dateTime(time);
}

/** A value of a document in one line. */
export function short(value: unknown): string {
  if (value === undefined || value === null) return NONE;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
