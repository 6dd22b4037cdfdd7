/** What git says of changes and of earlier commits, in repositories made here. */
import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { changedSince, commitBefore } from './changes.mjs';

const HOUR_S = 3600;

/** A repository with functions that write files and commit; without the settings of the machine's user. */
function repository(t) {
  const dir = t.testdir();
  const git = (args, env = {}) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
      cwd: dir,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', ...env },
    }).trim();
  git(['init', '--quiet', '--initial-branch', 'main']);
  const write = (file, text = file) => writeFileSync(join(dir, file), text);
  /** Commits all files. @returns the commit */
  const commit = (hoursAgo) => {
    const date = `${Math.round(Date.now() / 1000 - hoursAgo * HOUR_S)} +0000`;
    git(['add', '--all']);
    git(['commit', '--quiet', '-m', 'x'], { GIT_COMMITTER_DATE: date, GIT_AUTHOR_DATE: date });
    return git(['rev-parse', 'HEAD']);
  };
  return { dir, git, write, commit };
}

t.test('changes are those of commits, of the index and of the working tree', async (t) => {
  const { dir, git, write, commit } = repository(t);
  for (const file of ['same', 'committed', 'staged', 'edited', 'deleted', 'renamed']) write(file);
  const base = commit(30);
  write('committed', 'other');
  commit(1);
  write('staged', 'other');
  git(['add', 'staged']);
  write('edited', 'other');
  write('with space and ä');
  rmSync(join(dir, 'deleted'));
  renameSync(join(dir, 'renamed'), join(dir, 'new name'));
  write('.gitignore', 'ignored');
  write('ignored');
  t.same(changedSince(base, dir).sort(), [
    '.gitignore',
    'committed',
    'deleted',
    'edited',
    'new name',
    'renamed',
    'staged',
    'with space and ä',
  ]);
});

t.test('a revision that does not exist is an error with its name', async (t) => {
  const { dir, write, commit } = repository(t);
  write('a');
  commit(1);
  t.throws(() => changedSince('no-such-branch', dir), { name: 'SetupError', message: /no-such-branch/ });
});

t.test('the newest commit over 20 hours old is the base', async (t) => {
  const { dir, write, commit } = repository(t);
  const commits = [50, 21, 19, 0].map((hours) => {
    write('a', String(hours));
    return commit(hours);
  });
  t.equal(commitBefore(20, dir), commits[1]);
  t.equal(commitBefore(60, dir), null);
});

t.test('a commit of a branch that was merged since is no base: the branch came later', async (t) => {
  const { dir, git, write, commit } = repository(t);
  write('a');
  const base = commit(40);
  git(['checkout', '--quiet', '-b', 'branch']);
  write('b');
  commit(25);
  git(['checkout', '--quiet', 'main']);
  git(['merge', '--quiet', '--no-ff', '-m', 'merge', 'branch']);
  t.equal(commitBefore(20, dir), base);
  t.same(changedSince(base, dir), ['b']);
});

t.test('a shallow clone has no base', async (t) => {
  const { dir, git, write, commit } = repository(t);
  write('a');
  commit(40);
  write('a', 'other');
  commit(30);
  const clone = join(dir, 'clone');
  git(['clone', '--quiet', '--depth', '1', `file://${dir}`, clone]);
  t.equal(commitBefore(20, clone), null);
});
