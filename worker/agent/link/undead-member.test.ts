/** A member's rank that can't be killed: the leader is notified, and the member ends. */
import t from 'tap';
import { unkillableProcesses } from '../../testing/child-processes.js';
import { linked, memberOf, scriptedHost } from '../../testing/linked-world.js';
import type { MemberWorld } from './member-world.js';

t.test('a rank of a member that can not be killed is lost for the leader, too', async (t) => {
  const { fork, release } = unkillableProcesses();
  const members: MemberWorld[] = [];
  const host = scriptedHost(2000, { fork, kill_ms: 100 });
  const { world } = await linked(t, {
    scripts: ['wait', 'hang'],
    enter: (sealed, workerId) => void members.push(memberOf(sealed, workerId, { host })),
  });
  t.match(await world().ended, {
    kind: 'lost',
    rank: 1,
    end: { kind: 'node_lost', message: /^rank 1, process \d+, still exists 0.1 s after SIGKILL/ },
  });
  await members[0]?.end('the test is over');
  release();
});
