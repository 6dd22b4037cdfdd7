import t from 'tap';
import { ServerLimits } from './server-limits.js';

t.test('work of one server is limited, and of one that fails to a probe', async (t) => {
  const limits = new ServerLimits(2);
  const [a, b] = [limits.enter('a'), limits.enter('a')];
  t.equal(limits.enter('a'), null);
  const other = limits.enter('b');
  t.ok(other, 'another server is free');
  a?.(false);
  t.equal(limits.enter('a'), null, 'one is enough while it fails');
  b?.(false);
  const probe = limits.enter('a');
  t.ok(probe);
  t.equal(limits.enter('a'), null);
  probe?.(true);
  t.ok(limits.enter('a'));
  t.ok(limits.enter('a'), 'it answers again');
});
