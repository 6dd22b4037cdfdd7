/** The Python client's own tests, and its types, where Python has what they need; python.deep.test.ts installs it. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { formatOfName } from '../../contracts/dataset-names.js';
import { projectRoot } from '../../platform/process/root.js';
import { pythonWith } from '../support/python.js';

const cwd = join(projectRoot(), 'clients', 'python');

function check(name: string, packages: string[], args: string[]) {
  const found = pythonWith(...packages);
  return t.test(name, { skip: 'missing' in found && found.missing }, async (t) => {
    if ('missing' in found) return;
    const { status, stdout, stderr } = spawnSync(found.python, args, { cwd, encoding: 'utf8' });
    t.equal(status, 0, `${stdout}\n${stderr}`);
  });
}

await check('its tests pass', ['httpx'], ['-B', '-m', 'unittest']);
await check('the types of the async client are current', ['ast'], ['async_types.py', '--check']);
await check('mypy accepts its types', ['httpx', 'mypy'], ['-m', 'mypy', '--cache-dir', '/dev/null', '.']);

t.test('files have the formats that the other clients give them', async (t) => {
  const source = readFileSync(join(cwd, 'zerofleet', 'datasets.py'), 'utf8');
  const [, table = ''] = /^FORMATS: .*= \{\n([^}]*)\}/m.exec(source) ?? [];
  const entries = [...table.matchAll(/"(\w+)": "(\w+)"/g)];
  t.ok(entries.length >= 7, `${entries.length} extensions`);
  for (const [, extension = '', format] of entries)
    t.equal(formatOfName(`a.${extension}`), format, extension);
});
