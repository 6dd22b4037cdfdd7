/** A world whose ranks run on several workers: each end as the leader sees it, and no ranks left behind. */
import { once } from 'node:events';
import { hostname } from 'node:os';
import t from 'tap';
import { ZerofleetError } from '../../../contracts/index.js';
import { until } from '../../../platform/testing/waiting.js';
import { deferred } from '../../shared/deferred.js';
import { joined, leaderOf, silentServer } from '../../testing/link-peers.js';
import {
  ignoringListener,
  linked,
  memberOf,
  scriptedJob,
  TOKENS_DIGEST,
} from '../../testing/linked-world.js';
import { heartbeatOf, isGone, lost, recording, shard, TOKEN, worldAt } from '../../testing/world-messages.js';
import type { LogLine } from '../supervisor/log-line.js';
import type { Rank } from '../supervisor/rank.js';

t.test('rendezvous keys travel between ranks of two workers as exact bytes', async (t) => {
  const { world } = await linked(t, { scripts: ['relay', 'relay'] });
  t.strictSame(await world().ended, { kind: 'stopped', step: 9, flags: 0 });
});

t.test('several ranks on each of three workers stop together', async (t) => {
  const placements = ['leader', 'a', 'b'].map((workerId) => ({ worker_id: workerId, slots: 2 }));
  const { world } = await linked(t, { scripts: Array(6).fill('stop'), placements });
  t.strictSame(await world().ended, { kind: 'stopped', step: 5, flags: 1 });
});

t.test('the end of a remote rank is reported unchanged: host, step, code, last lines', async (t) => {
  const { world } = await linked(t, { scripts: ['wait', 'wait', 'crash'] });
  t.match(lost(await world().ended), {
    rank: 2,
    host: hostname(),
    end: { kind: 'exited', code: 7, output: ['the last line'] },
  });
});

t.test('the death of a remote rank explains the broken connection of a local rank', async (t) => {
  const { world } = await linked(t, { scripts: ['symptom', 'symptom'] });
  t.match(lost(await world().ended), { rank: 1, end: { kind: 'signalled', signal: 'SIGKILL' } });
});

t.test(
  'lines of a remote rank arrive in order, before its end, and forbidden characters are removed',
  async (t) => {
    const { world } = await linked(t, { scripts: ['wait', 'crash'] });
    const lines: [number, LogLine][] = [];
    await world({ ...ignoringListener, onLine: (rank, line) => lines.push([rank, line]) }).ended;
    t.match(
      lines.filter(([rank]) => rank === 1).map(([, { stream, message }]) => [stream, message]),
      [
        ['worker', /^started on \S+, process \d+$/],
        ['stderr', 'the last line'],
        ['worker', 'exited with code 7'],
      ],
    );

    const forged: LogLine[] = [];
    const at = new Date().toISOString();
    const liar = await linked(t, {
      scripts: ['wait', 'wait'],
      enter: async (sealed, workerId) => {
        const link = await joined(sealed, workerId);
        link.trust();
        link.send({ kind: 'ready', tokens_digest: TOKENS_DIGEST });
        await link.next();
        const line = { at, stream: 'stdout', message: '\u001b[2Ja\nb', truncated: false, dropped: 0 };
        link.send({ kind: 'line', rank: 1, line });
        link.send({ kind: 'line', rank: 1, line: { ...line, message: 'x'.repeat(2001) } });
      },
    });
    const end = await liar.world({
      ...ignoringListener,
      onLine: (rank, line) => rank === 1 && forged.push(line),
    }).ended;
    t.match(lost(end), { rank: 1, end: { kind: 'node_lost' } }, 'a line that is too long ends the link');
    t.match(forged, [{ message: 'a\ufffdb' }, { stream: 'worker', message: /^lost with its worker/ }]);
  },
);

t.test('kill leaves no rank on any worker', async (t) => {
  const started: Rank[] = [];
  const { world } = await linked(t, {
    scripts: ['wait', 'wait'],
    enter: (sealed, workerId) => memberOf(sealed, workerId, { host: recording(started) }),
  });
  const running = world();
  await running.kill();
  t.strictSame(await running.ended, { kind: 'killed' });
  t.equal(started.length, 1);
  t.ok(started.every(isGone));
});

t.test('a member that disconnects is reported as the cause, and its ranks end with it', async (t) => {
  const started: Rank[] = [];
  const members: ReturnType<typeof memberOf>[] = [];
  const { world } = await linked(t, {
    scripts: ['wait', 'wait'],
    enter: (sealed, workerId) => members.push(memberOf(sealed, workerId, { host: recording(started) })),
  });
  const running = world();
  await until(() => started.length === 1);
  await members[0]?.end('the cable was pulled');
  t.match(lost(await running.ended), { rank: 1, host: hostname(), end: { kind: 'node_lost' } });
  t.ok(started.every(isGone));
});

t.test('a leader that disconnects leaves no ranks at its members', async (t) => {
  const started: Rank[] = [];
  const members: ReturnType<typeof memberOf>[] = [];
  const { server, world } = await linked(t, {
    scripts: ['wait', 'wait'],
    enter: (sealed, workerId) => members.push(memberOf(sealed, workerId, { host: recording(started) })),
  });
  const running = world();
  await until(() => started.length === 1);
  await server.close();
  await members[0]?.ended;
  t.ok(started.every(isGone));
  await running.ended;
});

t.test('a stopped leader with an open connection leaves no ranks at its members', async (t) => {
  const started: Rank[] = [];
  // Sends a leader's messages up to the start of its ranks, and then nothing, not even pings.
  const port = await leaderOf(t, TOKEN, async (link) => {
    await link.next();
    link.send({
      kind: 'start',
      rank: 1,
      world_size: 2,
      nonce: 'n',
      load: null,
      base: null,
      failures_per_second: 0,
    });
  });
  const member = memberOf(worldAt(port), 'a', { host: recording(started), silence_ms: 1000 });
  await member.ended;
  t.equal(started.length, 1);
  t.ok(started.every(isGone));
});

t.test('a leader that is stopped before its first message blocks no other worker', async (t) => {
  await memberOf(worldAt(await silentServer(t)), 'a', { silence_ms: 500 }).ended;
});

t.test('a member that is stopped is lost after a timeout', async (t) => {
  const { world } = await linked(t, {
    scripts: ['wait', 'wait'],
    silence_ms: 1000,
    // A member that never sends pings.
    enter: async (sealed, workerId) => {
      const link = await joined(sealed, workerId);
      link.send({ kind: 'ready', tokens_digest: TOKENS_DIGEST });
    },
  });
  t.match(lost(await world().ended), { rank: 1, end: { kind: 'node_lost', message: /nothing was heard/ } });
});

t.test('the error names a member that does not join', async (t) => {
  const coming = linked(t, { scripts: ['wait', 'wait'], join_ms: 200, enter: () => undefined });
  await t.rejects(coming, { code: 'node_lost', message: /member-1 did not join/ });
});

t.test('a member that disconnects before the start is not waited for', async (t) => {
  const coming = linked(t, {
    scripts: ['wait', 'wait'],
    enter: async (sealed, workerId) => (await joined(sealed, workerId)).close('changed its mind'),
  });
  await t.rejects(coming, { code: 'node_lost', message: /closed/ });
});

t.test('an error in the preparation of a member is the error of the world', async (t) => {
  const prepare = () => Promise.reject(new ZerofleetError('dataset_corrupt', 'as the test asked'));
  const coming = linked(t, {
    scripts: ['wait', 'wait'],
    enter: (sealed, workerId) => memberOf(sealed, workerId, { prepare }),
  });
  await t.rejects(coming, { code: 'dataset_corrupt', message: 'as the test asked' });
});

t.test('a member that has prepared other tokens is refused', async (t) => {
  const tokensDigest = `sha256:${'1'.repeat(64)}`;
  const coming = linked(t, {
    scripts: ['wait', 'wait'],
    enter: (sealed, workerId) =>
      memberOf(sealed, workerId, {
        prepare: async () => ({ ...scriptedJob(), tokens_digest: tokensDigest }),
      }),
  });
  await t.rejects(coming, {
    code: 'tokens_mismatch',
    message:
      /worker member-1 has sha256:1+, worker leader, which leads the job, has sha256:0+; run the same version/,
  });
});

for (const [title, message] of [
  ['a message without a meaning', { kind: 'stop_everything' }],
  ['a message of a rank that it does not run', heartbeatOf(0)],
  ['a shard with a path for a name', shard('../../x.safetensors')],
  ['a step that is no number', heartbeatOf(1, '1')],
  ['what only rank 0 may say', { kind: 'message', rank: 1, message: { kind: 'stepped', step: 1 } }],
] as const) {
  t.test(`a member that sends ${title} is cut off`, async (t) => {
    const { world } = await linked(t, {
      scripts: ['wait', 'wait'],
      enter: async (sealed, workerId) => {
        const link = await joined(sealed, workerId);
        link.trust();
        link.send({ kind: 'ready', tokens_digest: TOKENS_DIGEST });
        await link.next();
        link.send(message);
      },
    });
    t.match(lost(await world().ended), { rank: 1, end: { kind: 'node_lost' } });
  });
}

t.test('a member starts its own ranks and no others, each once, and only when it is ready', async (t) => {
  for (const orders of [[0], [1, 1], [2]]) {
    const started: Rank[] = [];
    const port = await leaderOf(t, TOKEN, async (link) => {
      await link.next();
      for (const rank of orders)
        link.send({
          kind: 'start',
          rank,
          world_size: 3,
          nonce: 'n',
          load: null,
          base: null,
          failures_per_second: 0,
        });
    });
    await memberOf(worldAt(port), 'a', { host: recording(started) }).ended;
    t.equal(started.length, orders.length - 1, `orders ${orders}`);
    t.ok(started.every(isGone));
  }
});

t.test('a preparation ends when the leader is gone', async (t) => {
  const aborted = deferred<void>();
  const port = await leaderOf(t, TOKEN, (link) => link.close('gone'));
  const prepare = async (signal: AbortSignal) => {
    if (!signal.aborted) await once(signal, 'abort');
    aborted.resolve();
    return scriptedJob();
  };
  await memberOf(worldAt(port), 'a', { prepare }).ended;
  await aborted.promise;
});
