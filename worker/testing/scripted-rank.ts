/**
 * Child process for tests of the supervision, which follows the script in its start message's job id; commas separate
 * one script per rank.
 */
import { writeSync } from 'node:fs';
import type { AgentMessage, RankMessage } from '../../contracts/rank-protocol.js';
import { heartbeat } from './heartbeat.js';
import { stepped } from './stepped.js';

const send = (message: RankMessage) => process.send?.(message);

function act(script: string, rank: number): void {
  switch (script) {
    case 'crash':
      writeSync(2, 'the last line\n');
      process.exit(7);
      return;
    case 'abort':
      process.abort();
      return;
    case 'kill':
      process.kill(process.pid, 'SIGKILL');
      return;
    case 'hang':
      // Only after its first message, because a rank without one may still be loading.
      setTimeout(() => process.kill(process.pid, 'SIGSTOP'), 100);
      return;
    case 'symptom':
      // Rank 1 dies a little later than rank 0 notices it.
      if (rank === 1) setTimeout(() => process.kill(process.pid, 'SIGKILL'), 200);
      else fail('comm_failed');
      return;
    case 'fail':
      fail('out_of_memory');
      return;
    case 'stuck':
      writeSync(1, 'thinking\n');
      send(heartbeat());
      send({ kind: 'publish', key: 'stuck', value: new Uint8Array() });
      return;
    case 'heap':
      writeSync(2, 'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n');
      process.abort();
      return;
    case 'relay':
    case 'timeout':
      send({ kind: 'publish', key: `from-${rank}`, value: Uint8Array.of(rank) });
      return;
    case 'peak':
      send(heartbeat({ memory_bytes: 5000 }));
      send({ kind: 'publish', key: 'peaked', value: new Uint8Array() });
      return;
    case 'stop':
      send({ kind: 'stopped', step: 5, flags: 1 });
      return;
  }
}

function fail(code: string): void {
  process.send?.({ kind: 'failed', error: { code, message: 'as scripted' }, step: 4 }, () => process.exit(1));
}

const keys = new Set<string>();
let script = '';
setInterval(() => send(heartbeat()), 20);
process.on('message', (message: AgentMessage) => {
  if (message.kind === 'start') {
    const { job_id, rank } = message;
    script = job_id.split(',')[rank] ?? job_id;
    act(script, rank);
  }
  if (message.kind === 'exit') process.exit(0);
  if (message.kind === 'deliver') {
    if (message.key === 'peaked') send(stepped(4));
    // Ranks whose script is `outwait` time out only when another one is stuck, however long that one takes to start.
    if (message.key === 'stuck' && script === 'outwait') fail('comm_timeout');
    keys.add(`${message.key}=${message.value[0]}`);
    // A rank stops, or times out, only after it received the keys of all ranks, including its own.
    if (!keys.has('from-0=0') || !keys.has('from-1=1')) return;
    if (script === 'timeout') fail('comm_timeout');
    else send({ kind: 'stopped', step: 9, flags: 0 });
  }
});
