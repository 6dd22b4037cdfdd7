import t from 'tap';
import { parse, summary } from './main.js';

t.test('the command line is parsed, and unknown options are refused', async (t) => {
  t.same(parse([]), { dry_run: false, grace_ms: 86_400_000 });
  t.same(parse(['--dry-run', '--grace-hours', '0.5']), { dry_run: true, grace_ms: 1_800_000 });
  for (const args of [['--force'], ['all'], ['--grace-hours', '0'], ['--grace-hours', 'x']])
    t.throws(() => parse(args), /usage: npm run gc/);
});

t.test('the output reports the removals, or the reason for none', async (t) => {
  const collected = { skipped: null, leftovers: 2, objects: 3, bytes: 10, uploads: 1 };
  const given = { dry_run: false, grace_ms: 1 };
  t.equal(summary(collected, given), 'removed 2 leftovers (3 objects, 10 bytes) and 1 unfinished uploads\n');
  t.match(summary(collected, { ...given, dry_run: true }), /^would remove 2/);
  t.match(summary({ ...collected, skipped: 'empty' }, given), /Redis is empty.*recover/);
  t.match(summary({ ...collected, skipped: 'restoring' }, given), /restored/);
});
