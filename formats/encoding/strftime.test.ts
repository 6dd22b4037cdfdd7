// Compares dates with Python's output (golden/make_golden_dates.py).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { strftime } from './strftime.js';

const golden: { day: string; format: string; text: string }[] = JSON.parse(
  readFileSync(join(projectRoot(), 'worker', 'tasks', 'data', 'golden', 'dates.json'), 'utf8'),
);

t.test('a date is formatted as in Python', async (t) => {
  for (const { day, format, text } of golden) t.equal(strftime(day, format), text, `${day} ${format}`);
});

t.test('an unknown directive is refused', async (t) => {
  for (const format of ['%Q', 'a %c', '%-', '%', '%constructor'])
    t.throws(
      () => strftime('2026-11-25', format),
      { name: 'RangeError', message: /does not know %/ },
      format,
    );
});
