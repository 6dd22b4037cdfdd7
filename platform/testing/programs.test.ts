import { chmodSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import t from 'tap';
import { ensurePrograms } from './programs.js';

/** Refuses a second process, as APT does, and installs by creating an executable. */
const APT = `#!/bin/sh
cd "$(dirname "$0")"
mkdir busy || exit 100
sleep 0.1
for package in "$@"; do cp "$0" "$package"; done
rmdir busy
`;

const skip = process.getuid?.() === 0 ? false : 'only root installs';

t.test('test files that need packages at the same time wait for each other', { skip }, async (t) => {
  const dir = t.testdir();
  const path = process.env.PATH;
  t.teardown(() => {
    process.env.PATH = path;
  });
  process.env.PATH = [dir, path].join(delimiter);
  writeFileSync(join(dir, 'apt-get'), APT);
  chmodSync(join(dir, 'apt-get'), 0o755);
  const names = ['first', 'second', 'third'];
  t.strictSame(await Promise.all(names.map((name) => ensurePrograms([name], [name]))), [null, null, null]);
});
