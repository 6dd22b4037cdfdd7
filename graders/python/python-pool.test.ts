import t from 'tap';
import { pythonProcesses } from '../testing/python.js';
import { PythonPool } from './python-pool.js';

t.test('processes that make room for others count as long as they run', async (t) => {
  const limits = { seconds: 60, cpu_seconds: 10, memory_bytes: 2 ** 29 };
  const pool = new PythonPool({ program: 'python3', processes: 3, limits });
  t.teardown(() => pool.close());
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, pythonProcesses().filter(({ parent }) => parent === process.pid).length);
  }, 100);
  t.teardown(() => clearInterval(timer));
  const { signal } = new AbortController();
  /** Grades of different sources that end at the same time. */
  const gradeUntil = (until: number, numbers: readonly number[]) =>
    numbers.map((n) => {
      const source = `import time\ndef grade(sample, item):\n  time.sleep(max(0, item["until"] - time.time()))\n  return ${n}`;
      const graded = { item: { until }, sample: { output_text: '' } };
      return pool.grade(source, graded, { project: '', signal });
    });
  const now = Date.now() / 1000;
  const grades = [...gradeUntil(now + 2, [0, 1, 2]), ...gradeUntil(now + 5, [3, 4, 5])];
  t.same(await Promise.all(grades), [0, 1, 2, 3, 4, 5]);
  t.equal(most, 3);
});
