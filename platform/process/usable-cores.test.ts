import { join } from 'node:path';
import t, { type Test } from 'tap';
import { usableCores } from './usable-cores.js';

type Folder = { [name: string]: string | Folder };

/** Control groups as files. */
function groups(t: Test, own: string, files: Folder) {
  const dir = t.testdir({ own, root: files });
  return { own: join(dir, 'own'), root: join(dir, 'root') };
}

t.test('version 2: the minimum over a group and its ancestors, in whole cores', async (t) => {
  const files = (inner: string, outer = 'max 100000\n') => ({
    pod: { 'cpu.max': outer, job: { 'cpu.max': inner } },
  });
  const coresOf = (inner: string, outer?: string) =>
    usableCores(64, groups(t, '0::/pod/job\n', files(inner, outer)));
  t.equal(coresOf('400000 100000\n'), 4);
  t.equal(coresOf('250000 100000\n'), 2);
  t.equal(coresOf('50000 100000\n'), 1);
  t.equal(coresOf('max 100000\n'), 64);
  t.equal(coresOf('max 100000\n', '300000 100000\n'), 3, 'a limit of the parent group');
  t.equal(coresOf('9900000 100000\n'), 64, 'more than the machine has');
});

t.test('version 1, in a container whose own path is that of the host', async (t) => {
  const cpu = { 'cpu.cfs_quota_us': '800000\n', 'cpu.cfs_period_us': '100000\n' };
  const own = '5:memory:/host/path\n4:cpu,cpuacct:/host/path\n0::/\n';
  t.equal(usableCores(64, groups(t, own, { cpu })), 8);
  const free = { ...cpu, 'cpu.cfs_quota_us': '-1\n' };
  t.equal(usableCores(64, groups(t, own, { cpu: free })), 64);
});

t.test('without limits all cores count', async (t) => {
  t.equal(usableCores(64, groups(t, '', {})), 64);
  t.equal(usableCores(64, { own: '/nowhere', root: '/nowhere' }), 64);
  t.ok(usableCores() >= 1);
});
