import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t from 'tap';
import { ERROR_CATALOGUE } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { commandLibrary } from './library.js';

const state = join(projectRoot(), 'state');
const files = readdirSync(state, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.lua'),
);
const sources = new Map(
  files.map((path) => [basename(path, '.lua'), readFileSync(join(state, path), 'utf8')] as const),
);
const shared = files.filter((path) => path.startsWith('core/')).map((path) => basename(path, '.lua'));
const commands = [...sources.keys()].filter((name) => !shared.includes(name));

t.test('the library has every file once, and a function for each command', async (t) => {
  const { name, text } = commandLibrary();
  for (const [file, source] of sources) t.equal(text.split(source).length, 2, file);
  const functions = [...text.matchAll(/function_name = library \.\. '_(\w+)'/g)].map(
    ([, command]) => command,
  );
  t.same(functions.sort(), commands.sort());
  t.match(name, /^zerofleet_[0-9a-f]{16}$/);
  t.equal(text.split('\n')[0], `#!lua name=${name}`);
});

t.test('every command documents its arguments, replies and errors', async (t) => {
  for (const name of commands) {
    const source = sources.get(name) as string;
    const [header = ''] = source.split('\n\n');
    t.match(header, /^-- call: /m, `${name}: call`);
    t.match(header, /^-- Returns: ok/m, `${name}: returns`);
    for (const [, code = ''] of source.matchAll(/failure\('(\w+)'/g)) {
      t.ok(code in ERROR_CATALOGUE, `${name}: ${code} is in the catalogue`);
      t.ok(header.includes(code), `${name}: ${code} is in the header`);
    }
  }
});

t.test('only finish_job, and the end of an epoch, mark a job final', async (t) => {
  const containing = (text: string) => [...sources].filter(([, source]) => source.includes(text));
  t.strictSame(
    containing("'final', '1'").map(([name]) => name),
    ['finish'],
  );
  const ending = commands.filter((name) => /\b(finish|give_back)\(/.test(sources.get(name) as string));
  t.strictSame(ending.sort(), ['finish_job', 'release_attempt', 'requeue_abandoned']);
});
