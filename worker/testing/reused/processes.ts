/**
 * Child processes that perform ranks and tasks one after another. The start of a process takes a hundred times as long as a rank of most
 * tests. An agent sees one child process per rank or task, with the messages, the output and the end that a process of its own would have. A
 * process that was killed, or whose rank failed in training, is not used again.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { PassThrough } from 'node:stream';
import t from 'tap';
import { testProgram } from '../../../platform/testing/test-program.js';
import type { Fork } from '../../common/child-processes.js';

export interface BeginMessage {
  program: 'rank' | 'task';
  core: 'fake' | 'native';
  env: NodeJS.ProcessEnv;
}

/** Message of a process about the rank or task that it performs. */
export type ReusedMessage = { reused: 'ended'; code: number } | { reused: 'stdout' | 'stderr'; text: string };

const PROGRAM = testProgram('worker/testing/reused/main');

const idle: ChildProcess[] = [];
const runs = new Set<Run>();
let isOpen = false;

export interface ReusedProcesses {
  /** Takes the place of Node's `fork`. */
  fork: Fork;
  /** Returns the ids of the processes that perform ranks with a variable of this value. */
  rankPids(name: string, value: string): number[];
}

/**
 * Returns the processes for ranks and tasks with a core. They end with the test file.
 * @param rank_program main module that stands for a rank
 */
export function reuseProcesses(core: 'fake' | 'native', rank_program: string): ReusedProcesses {
  if (!isOpen) t.teardown(endAll);
  isOpen = true;
  const begin: Fork = (path, _args, { env = {} }) => {
    const program = path === rank_program ? 'rank' : 'task';
    const run = new Run(idle.pop() ?? start(), { program, core, env });
    return run as unknown as ChildProcess;
  };
  return { fork: begin, rankPids };
}

function rankPids(name: string, value: string): number[] {
  return [...runs].flatMap(({ begin, pid }) =>
    begin.program === 'rank' && begin.env[name] === value && pid !== undefined ? [pid] : [],
  );
}

function start(): ChildProcess {
  const child = fork(PROGRAM, [], {
    serialization: 'advanced',
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
  });
  child.once('exit', () => {
    if (idle.includes(child)) idle.splice(idle.indexOf(child), 1);
  });
  return child;
}

async function endAll(): Promise<void> {
  isOpen = false;
  const children = [...idle.splice(0), ...[...runs].map(({ child }) => child)];
  await Promise.all(
    children.map(async (child) => {
      const closed = once(child, 'close');
      hold(child, true);
      child.kill('SIGKILL');
      await closed;
    }),
  );
}

/** Chooses whether a process keeps this one alive. */
function hold(child: ChildProcess, isHeld: boolean): void {
  const parts = [child, child.channel, child.stdout, child.stderr];
  for (const part of parts as ({ ref(): void; unref(): void } | null)[])
    if (isHeld) part?.ref();
    else part?.unref();
}

/** A rank or task; the part of ChildProcess that agents use. */
class Run extends EventEmitter {
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly pid: number | undefined;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  connected = true;
  private is_killed = false;
  private readonly heard: [target: EventEmitter, event: string, listener: (...args: never[]) => void][];

  constructor(
    readonly child: ChildProcess,
    readonly begin: BeginMessage,
  ) {
    super();
    this.pid = child.pid;
    this.heard = [
      [child, 'message', (message: object) => this.receive(message)],
      [child, 'error', (error: Error) => this.emit('error', error)],
      [child, 'close', (code: number | null, signal: NodeJS.Signals | null) => void this.end(code, signal)],
      [child.stdout as EventEmitter, 'data', (text: Buffer) => this.stdout.write(text)],
      [child.stderr as EventEmitter, 'data', (text: Buffer) => this.stderr.write(text)],
    ];
    for (const [target, event, listener] of this.heard) target.on(event, listener as () => void);
    hold(child, true);
    runs.add(this);
    child.send(begin);
  }

  send(message: object, done?: (error: Error | null) => void): boolean {
    return this.child.send(message, done);
  }

  kill(signal?: NodeJS.Signals): boolean {
    if (!this.connected) return false;
    this.is_killed = true;
    return this.child.kill(signal);
  }

  private receive(message: object): void {
    if (!('reused' in message)) {
      this.emit('message', message);
      return;
    }
    const own = message as ReusedMessage;
    if (own.reused !== 'ended') this[own.reused].write(own.text);
    // A killed process is about to close.
    else if (!this.is_killed) void this.end(own.code, null);
  }

  private async end(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    runs.delete(this);
    for (const [target, event, listener] of this.heard) target.off(event, listener as () => void);
    if (this.child.connected) {
      hold(this.child, false);
      idle.push(this.child);
    }
    this.connected = false;
    this.exitCode = code;
    this.signalCode = signal;
    this.emit('exit', code, signal);
    const ends = [this.stdout, this.stderr].map((stream) => once(stream.end().resume(), 'end'));
    await Promise.all(ends);
    this.emit('close', code, signal);
  }
}
