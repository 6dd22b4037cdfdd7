/** Rounds of suites by distance, by turn and by time. */
import t from 'tap';
import { describePlan, planSuites, turnOf, turnOfDay } from './plan.mjs';

const suites = ['long', 'middle', 'short'].map((name) => ({ name, part: 'typescript' }));
const affected = (suite, distance) => ({ suite, distance, reason: `needs ${suite}.ts` });
const unaffected = (...names) => names.map((suite) => ({ suite, reason: 'needs none' }));
const names = (rounds) => rounds.map((round) => round.map(({ name }) => name));

t.test('the nearest comes first; those equally near stay in their order', async (t) => {
  const all = (...distances) => ({
    affected: suites.map(({ name }, index) => affected(name, distances[index])),
    unaffected: [],
  });
  t.same(names(planSuites(suites, all(3, 3, 1)).rounds), [['short', 'long', 'middle']]);
  t.same(names(planSuites(suites, all(Infinity, 2, Infinity)).rounds), [['middle', 'long', 'short']]);
});

t.test('others are left out, unless it is their turn', async (t) => {
  const selection = { affected: [affected('short', 1)], unaffected: unaffected('long', 'middle') };
  const { rounds, chosen, left } = planSuites(suites, selection);
  t.same(names(rounds), [['short']]);
  t.same(chosen, [{ name: 'short', reason: 'needs short.ts' }]);
  t.same(left, [
    { name: 'long', reason: 'needs none' },
    { name: 'middle', reason: 'needs none' },
  ]);
  const withTurns = [0, 1, 2].map((turn) => planSuites(suites, selection, turn));
  for (const plan of withTurns) t.same(names(plan.rounds)[0], ['short']);
  const seconds = withTurns.flatMap((plan) => names(plan.rounds)[1] ?? []);
  t.same(seconds.sort(), ['long', 'middle'], 'each has one turn in three days');
});

t.test('a turn depends on the name of the suite alone, and days take turns', async (t) => {
  t.equal(turnOf('test/e2e/s3.deep.test.ts'), turnOf('test/e2e/s3.deep.test.ts'));
  const turns = Array.from({ length: 300 }, (_, i) => turnOf(`test/${i}.deep.test.ts`));
  for (const turn of [0, 1, 2]) t.ok(turns.filter((value) => value === turn).length > 70);
  const day = Date.UTC(2026, 10, 29);
  const days = [0, 1, 2, 3].map((n) => turnOfDay(day + n * 86_400_000));
  t.same([...days.slice(0, 3)].sort(), [0, 1, 2]);
  t.equal(days[3], days[0]);
  t.equal(turnOfDay(day + 86_399_999), days[0]);
});

t.test('the description names each suite once, and files that affect none', async (t) => {
  const selection = { affected: [affected('short', 1)], unaffected: unaffected('long', 'middle') };
  const lines = describePlan(planSuites(suites, selection), 'v1', [{ file: 'LICENSE', why: 'no code' }]);
  t.match(lines[0], '1 of 3 suites selected by the changes since v1');
  t.same(lines.slice(1), [
    '  affects none: LICENSE: no code',
    '  not affected: long: needs none',
    '  not affected: middle: needs none',
    '  selected: short: needs short.ts',
  ]);
});
