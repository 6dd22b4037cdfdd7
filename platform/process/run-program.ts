import { ZerofleetError } from '../../contracts/index.js';
import { type Config, loadConfig } from '../config/config.js';
import { createLogger, type Logger } from '../logging/logging.js';

interface Running {
  close(): Promise<void>;
}

interface ProgramInput {
  config: Config;
  log: Logger;
}

/** Time for pending writes, such as the log. */
const LINGER_MS = 1_000;

/**
 * Runs a program until SIGTERM, SIGINT, or the exit of a parent that started it with an IPC channel; the
 * parent gets `{kind: 'ready'}`. The configuration comes from the environment. An error at the start goes to
 * standard error, with exit code 1.
 * @param name the name in the log
 */
export async function runProgram(
  name: string,
  start: (input: ProgramInput) => Promise<Running>,
): Promise<void> {
  try {
    const config = loadConfig(process.env);
    const log = createLogger({ level: config.log_level, name });
    const running = await start({ config, log });
    let isEnding = false;
    const stop = (reason: string) => {
      // The end disconnects from the parent, which is no other cause.
      if (!isEnding) void end(running, log, reason);
      isEnding = true;
    };
    // A second signal must not end the process in the middle of a save.
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(signal));
    if (!process.send) return;
    process.once('disconnect', () => stop('the parent is gone'));
    process.send({ kind: 'ready' });
  } catch (error) {
    process.stderr.write(`${error instanceof ZerofleetError ? error.message : (error as Error).stack}\n`);
    exitSoon(1);
  }
}

async function end(running: Running, log: Logger, reason: string): Promise<void> {
  log.info({ reason }, 'shutting down');
  try {
    await running.close();
    exitSoon(0);
  } catch (error) {
    log.fatal({ err: error }, 'shutdown failed');
    process.exit(1);
  }
}

/**
 * Lets the process end when it is idle, and forces it soon: a broken connection stays open until its TCP
 * timeout.
 */
function exitSoon(code: number): void {
  process.exitCode = code;
  // The parent's channel would keep this process alive.
  if (process.connected) process.disconnect();
  setTimeout(() => process.exit(), LINGER_MS).unref();
}
