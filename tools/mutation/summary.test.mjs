import { existsSync } from 'node:fs';
import t from 'tap';
import { inRoot } from '../bootstrap/paths.mjs';
import { AREAS } from './areas.mjs';
import { strykerPlugins } from './messages.mjs';
import { summaryOf } from './summary.mjs';

const at = (line, from, to) => ({ start: { line, column: from }, end: { line, column: to } });
const mutant = (status, location = at(1, 1, 2), replacement = '') => ({ status, location, replacement });

t.test('figures of each file and of all, and the survivors', async (t) => {
  const source = 'const a = 1;\nif (a > 1) {\n  b();\n}\n';
  const { lines, caught } = summaryOf({
    files: {
      'a.ts': {
        source,
        mutants: [
          mutant('Killed'),
          mutant('Timeout'),
          mutant('RuntimeError'),
          mutant('Ignored'),
          mutant('Survived', at(2, 5, 10), 'a >= 1'),
        ],
      },
      'b.ts': {
        source,
        mutants: [
          mutant('NoCoverage', { start: { line: 2, column: 12 }, end: { line: 4, column: 2 } }, '{}'),
        ],
      },
    },
  });
  t.equal(caught, 3 / 5);
  t.strictSame(lines, [
    '  a.ts: 4 mutants, 2 killed, 1 timeouts, 1 survived, 0 not covered: 75.0 %',
    '  b.ts: 1 mutants, 0 killed, 0 timeouts, 0 survived, 1 not covered: 0.0 %',
    '  all: 5 mutants, 2 killed, 1 timeouts, 1 survived, 1 not covered: 60.0 %',
    '  a.ts:2 a > 1 -> a >= 1',
    '  b.ts:2 { b(); } -> {}',
  ]);
});

t.test('the files of all areas exist', async (t) => {
  for (const { sources, tests } of Object.values(AREAS))
    for (const file of [...sources, ...tests]) t.ok(existsSync(inRoot(file)), file);
});

t.test('log lines and error messages are not mutated', async (t) => {
  const [{ value }] = strykerPlugins;
  const call = (object, name) => ({
    node: { type: 'CallExpression', callee: { type: 'MemberExpression', object, property: { name } } },
  });
  t.ok(value.shouldIgnore(call({ type: 'Identifier', name: 'log' }, 'warn')));
  t.ok(value.shouldIgnore(call({ type: 'MemberExpression', property: { name: 'log' } }, 'info')));
  const { node: body } = call({ type: 'Identifier', name: 'log' }, 'warn');
  t.ok(value.shouldIgnore({ node: { type: 'ArrowFunctionExpression', body } }));
  t.notOk(value.shouldIgnore(call({ type: 'Identifier', name: 'log' }, 'child')));
  t.notOk(value.shouldIgnore(call({ type: 'Identifier', name: 'store' }, 'warn')));
  t.notOk(value.shouldIgnore({ node: { type: 'CallExpression', callee: { type: 'Identifier' } } }));
  const argument = (name, key) => ({
    node: { type: 'StringLiteral' },
    parent: { type: 'NewExpression', callee: { name } },
    listKey: 'arguments',
    key,
  });
  t.ok(value.shouldIgnore(argument('ZerofleetError', 1)));
  t.notOk(value.shouldIgnore(argument('ZerofleetError', 0)), 'its code is not a message');
  t.ok(value.shouldIgnore(argument('RangeError', 0)));
  t.notOk(value.shouldIgnore(argument('Map', 0)));
  t.notOk(value.shouldIgnore({ ...argument('ZerofleetError', 1), listKey: 'params' }));
  t.notOk(value.shouldIgnore({ node: { type: 'StringLiteral' } }));
});
