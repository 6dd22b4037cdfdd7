import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { capture } from './command.mjs';
import { SetupError } from './errors.mjs';
import { fingerprint, listFiles } from './fingerprint.mjs';
import { withLock } from './lock.mjs';
import { dropForeignBuild, isaStamp } from './native-core.mjs';
import { checkNodeVersion, nodeVersionAdvice, recommendedMajors } from './node-version.mjs';
import { hasVersions } from './npm-packages.mjs';
import { inRoot } from './paths.mjs';
import { allDone } from './setup.mjs';

t.test('an old Node.js is refused', async (t) => {
  for (const old of ['18.20.4', '20.10.0']) t.throws(() => checkNodeVersion(old), SetupError, old);
  for (const good of ['20.19.0', '20.19.1', '22.0.0', process.versions.node]) checkNodeVersion(good);
});

t.test('an old but supported Node.js gets one line of advice', async (t) => {
  for (const old of ['20.19.0', '20.20.2', '21.7.3']) {
    const advice = nodeVersionAdvice(old);
    t.match(advice, `Node.js ${old} is past its end of life`);
    t.match(advice, 'recommends Node.js 22 or 24');
    t.notMatch(advice, '\n');
  }
  for (const good of ['22.0.0', '24.1.0', '26.0.0']) t.equal(nodeVersionAdvice(good), null, good);
});

t.test('documentation and images name the recommended versions of Node.js', async (t) => {
  const read = (file) => readFileSync(inRoot(file), 'utf8');
  const names = recommendedMajors.join(' or ');
  for (const page of ['README.md', 'docs/architecture.md']) t.match(read(page), `Node.js ${names}`, page);
  const [, image] = /^ARG NODE_IMAGE=node:(\d+)\./m.exec(read('infra/images/Dockerfile')) ?? [];
  t.ok(recommendedMajors.includes(Number(image)), `image of Node.js ${image}`);
});

t.test('installed packages are compared with the lock file by version', async (t) => {
  const wanted = { '': {}, a: { version: '1.0.0' }, b: { version: '2.0.0', optional: true } };
  t.equal(hasVersions(wanted, { a: { version: '1.0.0' }, b: { version: '2.0.0' } }), true);
  t.equal(hasVersions(wanted, { a: { version: '1.0.0' } }), true, 'an optional package may be absent');
  t.equal(hasVersions(wanted, { a: { version: '1.0.0' }, b: { version: '1.9.0' } }), false);
  t.equal(hasVersions(wanted, { a: { version: '1.0.1' } }), false);
  t.equal(hasVersions(wanted, {}), false);
});

t.test('a build folder of a moved or copied checkout is not used', async (t) => {
  const dir = t.testdir({ a: {}, b: {}, link: t.fixture('symlink', 'a'), build: {} });
  const [build, cache] = [join(dir, 'build'), join(dir, 'build', 'CMakeCache.txt')];
  dropForeignBuild(build, join(dir, 'a'));
  t.ok(existsSync(build), 'a folder without a CMake cache is kept');
  for (const [home, isKept] of [
    ['a', true],
    ['link', true],
    ['b', false],
    ['gone', false],
  ]) {
    mkdirSync(build, { recursive: true });
    writeFileSync(cache, `# text\nCMAKE_HOME_DIRECTORY:INTERNAL=${join(dir, home)}\nOTHER:STRING=x\n`);
    dropForeignBuild(build, join(dir, 'a'));
    t.equal(existsSync(build), isKept, home);
  }
});

t.test('a native build belongs to the instruction sets of a processor, or to all', async (t) => {
  const machine = (...flags) => `processor\t: 0\nflags\t\t: fpu ${flags.join(' ')} sse2\nbugs\t\t: avx512f\n`;
  const small = isaStamp(machine('avx2', 'fma', 'f16c'), false);
  t.not(isaStamp(machine('avx2', 'fma', 'f16c', 'avx512f', 'avx512_bf16'), false), small);
  t.equal(isaStamp(machine('mmx', 'f16c', 'fma', 'avx2'), false), small, 'other flags do not matter');
  t.equal(isaStamp(machine('avx2'), true), isaStamp('', true), 'all: on every machine the same');
  t.not(isaStamp('', false), isaStamp('', true));
});

t.test('commands: output, exit code, lines, a missing program', async (t) => {
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

t.test('concurrent tasks: all are awaited, and each error is reported once', async (t) => {
  t.same(await allDone([Promise.resolve(1), Promise.resolve(2)]), [1, 2]);
  let ended = false;
  const slow = new Promise((resolve) => setImmediate(resolve)).then(() => {
    ended = true;
  });
  const packages = Promise.reject(new SetupError('no network'));
  const addon = packages.then(() => t.fail('needs the packages'));
  const core = Promise.reject(new SetupError('no compiler'));
  await t.rejects(allDone([packages, slow, addon, core]), new SetupError('no network\n\nno compiler'));
  t.equal(ended, true);
  await t.rejects(
    allDone([Promise.reject(new SetupError('told')), Promise.reject(new TypeError('a bug'))]),
    TypeError,
  );
});

t.test('fingerprints depend on file names and contents only', async (t) => {
  const files = listFiles(['docs'], (path) => path.endsWith('/') || path.endsWith('.md'));
  t.ok(files.length > 3);
  t.equal(fingerprint(files), fingerprint([...files]));
  t.not(fingerprint(files), fingerprint(files.slice(1)));
  t.same(
    listFiles(['no-such-folder'], () => true),
    [],
  );
});

t.test('a lock: one process at a time; a dead process releases it', async (t) => {
  const name = `test-${process.pid}`;
  const order = [];
  const work = (label) => async () => {
    order.push(`${label} begins`);
    await new Promise((resolve) => setImmediate(resolve));
    order.push(`${label} ends`);
    return label;
  };
  const results = await Promise.all(['a', 'b', 'c'].map((label) => withLock(name, work(label))));
  t.same(results, ['a', 'b', 'c']);
  for (const [at, entry] of order.entries()) {
    if (at % 2 === 1) t.equal(entry, order[at - 1].replace('begins', 'ends'));
  }
  await t.rejects(
    withLock(name, () => Promise.reject(new Error('failed'))),
    { message: 'failed' },
  );

  const lock = new URL('./lock.mjs', import.meta.url).href;
  const script = `
    import { withLock } from ${JSON.stringify(lock)};
    await withLock(${JSON.stringify(name)}, () => {
      console.log('held');
      return new Promise((resolve) => setTimeout(resolve, 600_000));
    });`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script]);
  await once(holder.stdout, 'data');
  let waited = false;
  const mine = withLock(
    name,
    () => Promise.resolve('mine'),
    () => {
      waited = true;
      holder.kill('SIGKILL');
    },
  );
  t.equal(await mine, 'mine');
  t.equal(waited, true);
});
