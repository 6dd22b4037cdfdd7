import t from 'tap';
import { capture } from './command.mjs';
import { SetupError } from './errors.mjs';
import { fingerprint, listFiles } from './fingerprint.mjs';
import { checkNodeVersion } from './node-version.mjs';
import { hasVersions } from './npm-packages.mjs';

t.test('an old Node.js is refused', async (t) => {
  for (const old of ['18.20.4', '20.10.0']) t.throws(() => checkNodeVersion(old), SetupError, old);
  for (const good of ['20.11.0', '20.11.1', '22.0.0', process.versions.node]) checkNodeVersion(good);
});

t.test('installed packages are compared with the lock file by version', async (t) => {
  const wanted = { '': {}, a: { version: '1.0.0' }, b: { version: '2.0.0', optional: true } };
  t.equal(hasVersions(wanted, { a: { version: '1.0.0' }, b: { version: '2.0.0' } }), true);
  t.equal(hasVersions(wanted, { a: { version: '1.0.0' } }), true, 'an optional one may be absent');
  t.equal(hasVersions(wanted, { a: { version: '1.0.0' }, b: { version: '1.9.0' } }), false);
  t.equal(hasVersions(wanted, { a: { version: '1.0.1' } }), false);
  t.equal(hasVersions(wanted, {}), false);
});

t.test('commands: output, exit code, lines, a program that is not there', async (t) => {
  const lines = [];
  const script = 'console.log("one\\ntwo"); console.error("three"); process.exitCode = 3;';
  const { code, output } = await capture([process.execPath, '-e', script], {
    onLine: (line) => lines.push(line),
  });
  t.equal(code, 3);
  t.same(output.trim().split('\n').sort(), ['one', 'three', 'two']);
  t.same(lines.sort(), ['one', 'three', 'two']);
  t.match(await capture(['no-such-program-here']), { code: 127 });
});

t.test('fingerprints depend on the set of files and on nothing but their contents', async (t) => {
  const files = listFiles(['docs'], (path) => path.endsWith('/') || path.endsWith('.md'));
  t.ok(files.length > 3);
  t.equal(fingerprint(files), fingerprint([...files]));
  t.not(fingerprint(files), fingerprint(files.slice(1)));
  t.same(
    listFiles(['no-such-folder'], () => true),
    [],
  );
});
