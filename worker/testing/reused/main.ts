/**
 * Program of a process that performs one rank or task after another; see processes.ts. A rank that ends without an error or
 * before its first step leaves nothing running, and the process waits for the next one. Any other end ends the process.
 */
import { processChannel } from '../../rank/channel.js';
import { processJournal, withJournal } from '../../rank/journal.js';
import { runRank } from '../../rank/run-rank.js';
import { serveTask } from '../../task-process/serve-task.js';
import { fakeCore } from '../fake-core.js';
import { runFakeRank } from '../fake-rank.js';
import type { BeginMessage, ReusedMessage } from './processes.js';

const exit = process.exit.bind(process);
const send = process.send?.bind(process);
const tell = (message: ReusedMessage) => send?.(message);
let has_trained = false;

const wait = () => {
  for (const event of ['message', 'disconnect']) process.removeAllListeners(event);
  process.once('disconnect', () => exit(0));
  process.once('message', begin);
};

function begin(message: unknown): void {
  const { program, core, env } = message as BeginMessage;
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  has_trained = false;
  const held: unknown[] = [];
  const hold = (next: unknown) => void held.push(next);
  // Until a module is loaded, its messages wait.
  process.on('message', hold);
  void PERFORM[core][program]().then((perform) => {
    process.off('message', hold);
    process.removeAllListeners('disconnect');
    perform();
    for (const next of held) process.emit('message', next, undefined);
  });
}

type Load = () => Promise<() => void>;

/** Loads what a rank or task needs. */
const PERFORM: Record<BeginMessage['core'], Record<BeginMessage['program'], Load>> = {
  fake: {
    rank: async () => () => void runFakeRank().then((code) => process.exit(code)),
    task: async () => () => serveTask(fakeCore()),
  },
  native: {
    rank: async () => {
      const { nativeCore } = await import('../../native/adapter.js');
      const channel = withJournal(processChannel(), processJournal);
      return () => void runRank(channel, nativeCore).then((code) => process.exit(code));
    },
    task: async () => {
      const { nativeCore } = await import('../../native/adapter.js');
      return () => serveTask(nativeCore);
    },
  },
};

process.send = (message: { kind?: string }, ...rest: []) => {
  if (message.kind === 'running') has_trained = true;
  return send?.(message, ...rest) ?? false;
};

process.exit = ((code: number) => {
  const isClean = code === 0 || (code === 1 && !has_trained);
  if (!isClean) exit(code);
  wait();
  tell({ reused: 'ended', code });
}) as typeof process.exit;

// On the channel, output cannot arrive after the end of its rank.
for (const name of ['stdout', 'stderr'] as const)
  process[name].write = ((text: string) =>
    tell({ reused: name, text: String(text) })) as typeof process.stdout.write;

wait();
