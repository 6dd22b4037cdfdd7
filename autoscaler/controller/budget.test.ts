import t from 'tap';
import { affordablePerHour, charge } from './budget.js';

const NOON = Date.parse('2026-11-22T12:00:00Z');
const HOUR_MS = 3_600_000;
const today = (amount: number) => ({ day: '2026-11-22', amount });

t.test('charges the time since the last observation', async (t) => {
  const at = (observedAt: number | null) => charge({ spent: today(5), observed_at: observedAt }, NOON, 4);
  t.same(at(NOON - HOUR_MS / 2), today(7));
  t.same(at(NOON), today(5));
  t.same(at(null), today(5), 'the time before the first observation is not charged');
  t.same(at(NOON + HOUR_MS), today(5), 'a clock that was set back refunds nothing');
});

t.test('of an interval across midnight only the part in the new day counts', async (t) => {
  const midnight = Date.parse('2026-11-23T00:00:00Z');
  const spent = today(100);
  const at = (now: number) => charge({ spent, observed_at: midnight - HOUR_MS }, now, 4);
  t.same(at(midnight + HOUR_MS / 4), { day: '2026-11-23', amount: 1 });
  t.same(at(midnight), { day: '2026-11-23', amount: 0 });
});

t.test('the budget is limited to the cost of the next hour, or of the rest of the day', async (t) => {
  t.equal(affordablePerHour(undefined, 100, NOON), Number.POSITIVE_INFINITY);
  t.equal(affordablePerHour(10, 4, NOON), 6);
  t.equal(affordablePerHour(10, 10, NOON), 0);
  t.equal(affordablePerHour(10, 12, NOON), 0, 'never negative');
  t.equal(affordablePerHour(10, 4, NOON + 11.5 * HOUR_MS), 12, 'half an hour is left');
  t.equal(affordablePerHour(10, 4, NOON + 12 * HOUR_MS), 6, 'the whole day is left');
});
