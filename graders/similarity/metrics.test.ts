import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { METRICS } from './metrics.js';
import { commonLength } from './tokens.js';

type Metric = keyof typeof METRICS;
/** Values of other programs (make_golden_similarity.py); those of ROUGE have single precision. */
const GOLDEN = JSON.parse(
  readFileSync(join(projectRoot(), 'graders', 'golden', 'similarity.json'), 'utf8'),
) as ({ input: string; reference: string } & Record<Metric, number>)[];

t.test('values of nltk, RapidFuzz and torchmetrics', (t) => {
  t.ok(GOLDEN.length > 10);
  for (const { input, reference, ...expected } of GOLDEN)
    for (const metric of Object.keys(METRICS) as Metric[]) {
      const value = METRICS[metric](input, reference);
      const tolerance = metric.startsWith('rouge') ? 1e-6 : 1e-12;
      const name = `${metric} of ${JSON.stringify(input.slice(0, 20))}`;
      t.ok(Math.abs(value - expected[metric]) <= tolerance, `${name}: ${value}, ${expected[metric]}`);
    }
  t.end();
});

t.test('the longest common subsequence across words of bits', (t) => {
  const slow = (a: string[], b: string[]) => {
    let row = new Array<number>(b.length + 1).fill(0);
    for (const x of a) {
      const next = [0];
      for (const [j, y] of b.entries())
        next.push(x === y ? (row[j] ?? 0) + 1 : Math.max(row[j + 1] ?? 0, next[j] ?? 0));
      row = next;
    }
    return row[b.length] ?? 0;
  };
  let state = 7;
  const random = (n: number) => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * n);
  };
  for (let round = 0; round < 200; round += 1) {
    const [a, b] = [0, 1].map(() => Array.from({ length: random(130) }, () => 'abcd'[random(4)] ?? ''));
    t.equal(commonLength(a ?? [], b ?? []), slow(a ?? [], b ?? []));
  }
  const [long, short] = [5000, 200].map((n) => Array.from({ length: n }, () => 'abcd'[random(4)] ?? ''));
  t.equal(commonLength(long ?? [], short ?? []), slow(long ?? [], short ?? []));
  t.end();
});

t.test('the longest common subsequence across blocks', (t) => {
  const numbers = Array.from({ length: 5000 }, (_, index) => `${index}`);
  const withoutThirds = numbers.filter((_, index) => index % 3 > 0);
  t.equal(commonLength(numbers, numbers), 5000);
  t.equal(commonLength(numbers, withoutThirds), withoutThirds.length);
  t.equal(commonLength(withoutThirds, numbers), withoutThirds.length);
  t.equal(commonLength(numbers, numbers.toReversed()), 1);
  t.equal(commonLength(numbers, [...numbers.slice(2500), ...numbers.slice(0, 2500)]), 2500);
  t.end();
});

t.test('long texts take no quadratic memory', (t) => {
  const text = 'word '.repeat(20_000);
  for (const metric of Object.keys(METRICS) as Metric[])
    if (metric !== 'fuzzy_match') t.ok(METRICS[metric](text, text) > 0.99, metric);
  const distinct = Array.from({ length: 100_000 }, (_, index) => index.toString(36)).join(' ');
  const before = process.resourceUsage().maxRSS;
  t.equal(METRICS.rouge_l(distinct, distinct), 1);
  const kibibytes = process.resourceUsage().maxRSS - before;
  t.ok(kibibytes < 200 * 1024, `${kibibytes} KiB`);
  t.end();
});
