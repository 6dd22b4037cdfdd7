import t from 'tap';
import { oomEvidence, readOomKills } from './oom-kills.js';

const vmstat = (kills: number) => `pgfault 12\noom_kill ${kills}\nnuma_hit 4\n`;

t.test('the counter of a cgroup v2, by its path and as the root of a container', (t) => {
  const events = 'low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n';
  const nested = t.testdir({
    proc: { self: { cgroup: '0::/work/er\n' }, vmstat: vmstat(5) },
    sys: { fs: { cgroup: { work: { er: { 'memory.events': events } } } } },
  });
  t.strictSame(readOomKills(nested), { own_group: 2, machine: 5 });
  t.end();
});

t.test('a cgroup path of the host that does not exist in the container', (t) => {
  const dir = t.testdir({
    proc: { self: { cgroup: '0::/host/only\n' }, vmstat: vmstat(0) },
    sys: { fs: { cgroup: { 'memory.events': 'oom 1\noom_kill 1\n' } } },
  });
  t.strictSame(readOomKills(dir), { own_group: 1, machine: 0 });
  t.end();
});

t.test('the counter of a cgroup v1', (t) => {
  const control = 'oom_kill_disable 0\nunder_oom 0\noom_kill 4\n';
  const dir = t.testdir({
    proc: { self: { cgroup: '5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n' }, vmstat: vmstat(9) },
    sys: { fs: { cgroup: { memory: { a: { 'memory.oom_control': control } } } } },
  });
  t.strictSame(readOomKills(dir), { own_group: 4, machine: 9 });
  t.end();
});

t.test('a machine without counters', (t) => {
  t.strictSame(readOomKills(t.testdir({})), { own_group: null, machine: null });
  t.end();
});

t.test('the certainty of the evidence', (t) => {
  const kills = (ownGroup: number | null, machine: number | null) => ({ own_group: ownGroup, machine });
  t.match(oomEvidence(kills(1, 4), kills(2, 5)), /^almost certain/);
  t.match(oomEvidence(kills(null, 4), kills(null, 5)), /^likely/);
  t.equal(oomEvidence(kills(1, 4), kills(1, 5)), null, 'the kill was in another cgroup');
  t.equal(oomEvidence(kills(1, 4), kills(1, 4)), null);
  t.equal(oomEvidence(kills(null, null), kills(null, null)), null);
  t.equal(oomEvidence(kills(null, null), kills(3, 3)), null, 'unknown without a reading before');
  t.end();
});
