import t from 'tap';
import { readResults } from './repeat.mjs';

const OUTPUT = `
native
  FAILED native tests under ThreadSanitizer: 12 cases 3.0 s
  ok     native tests on an emulated CUDA device: 300 cases 93.1 s
  FAILED style (biome)

typescript
  FAILED test/e2e/s3.deep.test.ts 40.2 s (processor 12.0 s)
  FAILED a process that ended with code 1, with the tests test/e2e/hosts.deep.test.ts
  FAILED test/e2e/dev.deep.test.ts 9.2 s
  ok     test/e2e/dev.deep.test.ts 9.2 s
  FAILED test/e2e/s3.deep.test.ts 41.0 s (processor 12.0 s)
  FAILED test/e2e/late.deep.test.ts: not run again, the time limit is over

not run, since too little time was left: 1
  not run infra

FLAKY test/e2e/dev.deep.test.ts
-- failed first:
not ok 1 - x

FLAKY test/e2e/hosts.deep.test.ts

700 passed, 3 failed, 1 skipped
`;

t.test('names of what failed, of what was flaky, and of what was not run', async (t) => {
  t.same(readResults(OUTPUT), {
    sums: ['700 passed, 3 failed, 1 skipped'],
    failed: [
      'native tests under ThreadSanitizer',
      'style (biome)',
      'test/e2e/s3.deep.test.ts',
      'test/e2e/late.deep.test.ts',
    ],
    flaky: ['test/e2e/dev.deep.test.ts', 'test/e2e/hosts.deep.test.ts'],
    not_run: ['infra'],
  });
});
