/** What machines cost, day by day (UTC). */
import type { PoolState } from './types.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Charges `price_per_hour` for the time since the last look; of a time that spans midnight only what lies in the new day counts. */
export function charge(
  { spent, observed_at }: Pick<PoolState, 'spent' | 'observed_at'>,
  now: number,
  price_per_hour: number,
): PoolState['spent'] {
  const day = new Date(now).toISOString().slice(0, 10);
  const since = Math.max(observed_at ?? now, Math.floor(now / DAY_MS) * DAY_MS);
  const amount = (Math.max(0, now - since) / HOUR_MS) * price_per_hour;
  return { day, amount: (spent.day === day ? spent.amount : 0) + amount };
}

/**
 * What an hour of machines may still cost today: the budget is no cap if what runs already, and what is to be launched, would
 * exceed it in the next hour. Near midnight it is the rest of the day that counts.
 */
export function affordablePerHour(budget: number | undefined, spent: number, now: number): number {
  if (budget === undefined) return Number.POSITIVE_INFINITY;
  const left_ms = Math.min(HOUR_MS, DAY_MS - (now % DAY_MS));
  return (Math.max(0, budget - spent) * HOUR_MS) / left_ms;
}
