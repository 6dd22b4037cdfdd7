/** Cost of machines by day (UTC). */
import type { PoolState } from './types.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Charges `price_per_hour` for the time since the last observation. Of an interval across midnight only the
 * part in the new day counts.
 */
export function charge(
  { spent, observed_at }: Pick<PoolState, 'spent' | 'observed_at'>,
  now: number,
  pricePerHour: number,
): PoolState['spent'] {
  const day = new Date(now).toISOString().slice(0, 10);
  const since = Math.max(observed_at ?? now, Math.floor(now / DAY_MS) * DAY_MS);
  const amount = (Math.max(0, now - since) / HOUR_MS) * pricePerHour;
  return { day, amount: (spent.day === day ? spent.amount : 0) + amount };
}

/** Returns whether the budget of the day is spent. */
export function isExhausted(budget: number | undefined, spent: number): boolean {
  return spent >= (budget ?? Number.POSITIVE_INFINITY);
}

/**
 * Returns the price per hour that the rest of today's budget still allows. Machines that run, and those to be
 * launched, must not exceed the budget within the next hour, or the rest of the day near midnight.
 */
export function affordablePerHour(budget: number | undefined, spent: number, now: number): number {
  if (budget === undefined) return Number.POSITIVE_INFINITY;
  const leftMs = Math.min(HOUR_MS, DAY_MS - (now % DAY_MS));
  return (Math.max(0, budget - spent) * HOUR_MS) / leftMs;
}
