import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { createLogger } from '../../../platform/logging/logging.js';
import type { ChildProcessesOptions } from '../../shared/child-processes.js';
import { testProcesses, unkillableProcesses } from '../../testing/child-processes.js';
import { startMessage } from '../../testing/start-message.js';
import { LocalRankHost } from './local-rank-host.js';
import { World, type WorldEnd, type WorldListener } from './world.js';

const program = fileURLToPath(new URL('../../testing/scripted-rank.js', import.meta.url));
const log = createLogger({ level: 'silent', name: 'test' });

const ignore: WorldListener = {
  onConnected: () => undefined,
  verifyLoad: async () => undefined,
  onRunning: () => undefined,
  onStepped: () => undefined,
  onCall: () => undefined,
  onShard: () => undefined,
  onShardFailed: () => undefined,
  onLine: () => undefined,
};

/** Silence of a hanging rank. Others may be slow on a loaded machine, and no test waits for their silence. */
const HANGING_MS = 500;

/** Starts ranks that follow one script each. */
function world(scripts: string[], changes: Partial<ChildProcessesOptions> = {}, listener = ignore): World {
  const processes = testProcesses({ programs: { rank: program, task: '' }, ...changes });
  const ranks = scripts.map((jobId, rank) => {
    const silenceMs = jobId === 'hang' ? HANGING_MS : 60_000;
    return {
      start: startMessage({ job_id: jobId, rank, world_size: scripts.length }),
      host: new LocalRankHost({ processes, silence_ms: silenceMs, session: () => null, gpus: null, log }),
    };
  });
  return new World({ ranks, listener });
}

function lost(end: WorldEnd) {
  if (end.kind !== 'lost') throw new Error(`ended as ${end.kind}`);
  return end;
}

t.test('an exit reports its code and the last output', async (t) => {
  const end = lost(await world(['wait', 'crash']).ended);
  t.match(end, { rank: 1, host: hostname(), end: { kind: 'exited', code: 7, output: ['the last line'] } });
});

t.test('a crash and a kill report their signal', async (t) => {
  t.match(lost(await world(['abort', 'wait']).ended), {
    rank: 0,
    end: { kind: 'signalled', signal: 'SIGABRT' },
  });
  t.match(lost(await world(['wait', 'kill']).ended), {
    rank: 1,
    end: { kind: 'signalled', signal: 'SIGKILL' },
  });
});

t.test('a hanging rank is distinguished from a dead one and killed', async (t) => {
  const end = lost(await world(['wait', 'hang']).ended);
  t.match(end, { rank: 1, end: { kind: 'silent' } });
  t.ok((end.end as { silent_ms: number }).silent_ms >= HANGING_MS);
});

t.test('the error that a rank reports is used', async (t) => {
  const end = lost(await world(['wait', 'fail']).ended);
  t.strictSame(end, {
    kind: 'lost',
    rank: 1,
    host: hostname(),
    end: {
      kind: 'failed',
      error: { code: 'out_of_memory', message: 'as scripted' },
      step: 4,
      output: [],
    },
  });
});

t.test('a broken connection is explained by the death behind it', async (t) => {
  t.match(lost(await world(['symptom', 'symptom']).ended), { rank: 1, end: { kind: 'signalled' } });
});

t.test('a live rank that all others waited for is the cause, with its last output', async (t) => {
  const end = lost(await world(['outwait', 'outwait', 'stuck']).ended);
  t.match(end, { rank: 2, end: { kind: 'stuck', waiting: 2, step: 3, output: ['thinking'] } });
});

t.test('if every rank timed out, the first is reported', async (t) => {
  const { end } = lost(await world(['timeout', 'timeout']).ended);
  t.match(end, { kind: 'failed', error: { code: 'comm_timeout' } });
});

t.test('a full JavaScript heap is distinguished from a crash', async (t) => {
  const end = lost(await world(['wait', 'heap']).ended);
  t.match(end, { rank: 1, end: { kind: 'out_of_memory', signal: 'SIGABRT', evidence: /^certain/ } });
});

t.test('every rank gets the rendezvous keys of all, including its own', async (t) => {
  t.strictSame(await world(['relay', 'relay']).ended, { kind: 'stopped', step: 9, flags: 0 });
});

t.test('ranks that all stopped are told to exit', async (t) => {
  t.strictSame(await world(['stop', 'stop']).ended, { kind: 'stopped', step: 5, flags: 1 });
});

t.test('a step comes with the peak of the rank that used the most memory', async (t) => {
  const reported = new Promise<[step: number, memory_bytes: number]>((resolve) => {
    const onStepped: WorldListener['onStepped'] = ({ step }, use) => resolve([step, use.memory_bytes]);
    const running = world(['wait', 'peak'], {}, { ...ignore, onStepped });
    t.teardown(() => running.kill());
  });
  t.strictSame(await reported, [4, 5000]);
});

t.test('kill leaves no process and resolves, called once or twice', async (t) => {
  const running = world(['wait', 'wait']);
  await Promise.all([running.kill(), running.kill()]);
  t.strictSame(await running.ended, { kind: 'killed' });
});

t.test('a rank that cannot be killed is lost with its machine and blocks nothing', async (t) => {
  const { fork, release } = unkillableProcesses();
  t.teardown(release);
  const changes = { fork, kill_ms: 100 };
  const message = /^rank 1, process \d+, still exists 0.1 s after SIGKILL/;
  t.match(lost(await world(['wait', 'hang'], changes).ended), {
    rank: 1,
    end: { kind: 'node_lost', message },
  });
  const stuck = lost(await world(['outwait', 'stuck', 'outwait'], changes).ended);
  t.match(stuck, { rank: 1, end: { kind: 'node_lost', message, step: 3, output: ['thinking'] } });
  const killed = world(['wait', 'wait'], changes);
  await killed.kill();
  t.strictSame(await killed.ended, { kind: 'killed' });
});

t.test('a rank that cannot be killed keeps its GPU until it ends', async (t) => {
  const { fork, release } = unkillableProcesses();
  const processes = testProcesses({ programs: { rank: program, task: '' }, fork, kill_ms: 50 });
  const released: string[] = [];
  const given = new Promise<void>((resolve) => {
    const gpus = {
      take: () => ({ uuid: 'GPU-1', name: 'a GPU' }),
      release: (uuid: string) => {
        released.push(uuid);
        resolve();
      },
    };
    const host = new LocalRankHost({ processes, silence_ms: 20_000, session: () => null, gpus, log });
    const rank = host.start(startMessage({ job_id: 'wait' }), {
      onMessage: () => undefined,
      onLine: () => undefined,
    });
    void rank.kill().then(async () => {
      t.match(await rank.ended, { kind: 'node_lost' });
      t.strictSame(released, []);
      release();
    });
  });
  await given;
  t.strictSame(released, ['GPU-1']);
});
