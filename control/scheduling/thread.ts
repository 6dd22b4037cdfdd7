import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { LogLevel } from '../../platform/config/config.js';
import type { Logger } from '../../platform/logging/logging.js';
import { programPath } from '../../platform/process/programs.js';
import type { RunningScheduler } from './start.js';

export interface SchedulerThreadOptions {
  redisUrl: string;
  objectStoreUrl: string;
  s3Endpoint: string | null;
  level: LogLevel;
}

/** Messages of the thread: readiness, and lines of its log. */
export type ThreadMessage = { kind: 'ready' } | { kind: 'log'; line: string };

/** Delay before the restart of a thread that exited. */
const RESTART_MS = 1_000;
/**
 * Time in which a thread closes: for its decision in progress, and the release of its lease. A thread that waits for
 * Redis longer than this is ended, and its lease expires.
 */
const CLOSE_MS = 10_000;

/**
 * Starts the scheduler in a thread, because a decision on a large pool takes longer than requests should
 * wait. A thread that exits unexpectedly is restarted; jobs wait meanwhile, and nothing is lost.
 * @throws ObjectStoreError
 */
export async function startSchedulerThread(
  options: SchedulerThreadOptions,
  log: Logger,
): Promise<RunningScheduler> {
  let closing = false;
  let thread: Worker | null = await start(options, log);
  const ended = keep();

  async function keep(): Promise<void> {
    for (;;) {
      if (thread)
        await once(thread, 'exit').catch((error: unknown) =>
          log.error({ err: error }, 'scheduler thread exited'),
        );
      thread = null;
      if (closing) return;
      await sleep(RESTART_MS);
      if (closing) return;
      thread = await start(options, log).catch((error: unknown) => {
        log.error({ err: error }, 'could not start the scheduler thread');
        return null;
      });
      // The scheduler was closed while the thread started.
      if (thread && closing) askToClose(thread);
    }
  }

  return {
    async close() {
      if (thread && !closing) askToClose(thread);
      closing = true;
      await ended;
    },
  };
}

function askToClose(thread: Worker): void {
  thread.postMessage('close');
  const late = setTimeout(() => void thread.terminate(), CLOSE_MS);
  thread.once('exit', () => clearTimeout(late));
}

async function start(options: SchedulerThreadOptions, log: Logger): Promise<Worker> {
  const file = programPath('control/scheduling/thread-main');
  const thread = new Worker(file, { workerData: options });
  await new Promise<void>((resolve, reject) => {
    thread.on('message', (message: ThreadMessage) => {
      if (message.kind === 'ready') resolve();
      else relayLine(message.line, log);
    });
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('the scheduler thread exited during its start')));
  });
  return thread;
}

/** Writes a line of the thread's log to this process' log. */
function relayLine(line: string, log: Logger): void {
  const { level, time: _time, name, msg, ...fields } = JSON.parse(line);
  if (level === 'info' || level === 'warn' || level === 'error')
    log[level as 'info']({ part: name, ...fields }, msg);
}
