/**
 * Selection of suites in this checkout: no file may be unknown, since new folders would otherwise affect every suite
 * unnoticed.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import t from 'tap';
import { inRoot, root } from '../../bootstrap/paths.mjs';
import { deepSuites } from '../suites.mjs';
import { reachOfSuites } from './changes.mjs';
import { selectAffected } from './select.mjs';

/** Tracked files; null where git cannot list them, as in a copy without its repository. */
function trackedFiles() {
  try {
    const options = { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: 'pipe' };
    const files = execFileSync('git', ['ls-files', '-z'], options).split('\0');
    return files.filter((file) => file && existsSync(inRoot(file)));
  } catch {
    return null;
  }
}

const files = trackedFiles();
if (files === null) {
  t.test('selection in this checkout', { skip: 'git cannot list its files' }, async () => {});
} else {
  const reach = reachOfSuites();
  const affectedBy = (...changed) => selectAffected(changed, reach).affected.map(({ suite }) => suite);
  const one = (pattern) => files.find((file) => pattern.test(file));
  const sanitizers = ['native asan', 'native emulated-tests', 'native tsan'];

  t.test('the selection knows every deep suite', async (t) => {
    t.same(
      [...reach.suites].sort(),
      deepSuites()
        .map(({ name }) => name)
        .sort(),
    );
  });

  t.test('rules or references say of every file what it affects', async (t) => {
    const unknown = files.filter((file) => reach.classify(file).why.startsWith('no rule'));
    t.same(unknown, [], 'add an edge to tools/test/affected/edges.mjs for what reads or starts these');
  });

  t.test('the console: its tests, and nothing native', async (t) => {
    const suites = affectedBy(one(/^clients\/console\/app\/.*\.tsx$/));
    t.ok(suites.length >= 10);
    t.same(
      suites.filter((name) => !name.startsWith('test/console/')),
      [],
    );
  });

  t.test('kernels: sanitizers first, and jobs; the CUDA build where it includes the file', async (t) => {
    const suites = affectedBy(one(/^native\/kernels\/.*\/cpu\/.*\.cc$/));
    t.same(suites.slice(0, 3).sort(), sanitizers);
    t.notOk(suites.includes('native cuda'));
    t.ok(suites.includes('test/e2e/families.deep.test.ts'));
    t.notOk(suites.includes('test/console/runs.deep.test.ts'));
    t.ok(affectedBy('native/kernels/common/backend.h').includes('native cuda'));
    t.ok(affectedBy(one(/\.cu$/)).includes('native cuda'));
  });

  t.test('native tests: the native suites alone', async (t) => {
    t.same(affectedBy(one(/^native\/test\/zero\/.*_test\.cc$/)).sort(), sanitizers);
  });

  t.test('a page: the test that runs its commands', async (t) => {
    t.same(affectedBy('docs/guide.md'), ['test/docs/guide.deep.test.ts']);
    t.same(affectedBy('docs/pools.md'), []);
  });

  t.test('ranks: the tests of the whole system', async (t) => {
    const suites = affectedBy('worker/rank/run-rank.ts');
    for (const name of ['e2e/families', 'e2e/s3', 'chaos/chaos', 'docs/guide', 'e2e/gpu-worker'])
      t.ok(suites.includes(`test/${name}.deep.test.ts`), name);
    for (const name of [...sanitizers, 'test/console/runs.deep.test.ts']) t.notOk(suites.includes(name));
  });

  t.test('Terraform: infra, and the test that reads the rights on Redis', async (t) => {
    t.same(affectedBy('infra/terraform/modules/queue/access.tf'), [
      'infra',
      'test/infra/redis-access.deep.test.ts',
    ]);
  });

  t.test(
    'programs and scripts that are started by their names reach the tests of the whole system',
    async (t) => {
      for (const file of [
        'api/main.ts',
        'autoscaler/main.ts',
        'worker/agent/main.ts',
        'worker/rank/main.ts',
        'worker/tasks/main.ts',
        'control/scheduling/thread-main.ts',
        'formats/encoding/encoder-thread.ts',
        'state/jobs/commands/create_job.lua',
        'contracts/openapi/openapi.yaml',
      ])
        t.ok(affectedBy(file).includes('test/e2e/s3.deep.test.ts'), file);
      t.ok(affectedBy('clients/cli/main.ts').includes('test/e2e/terminal.deep.test.ts'));
    },
  );
}
