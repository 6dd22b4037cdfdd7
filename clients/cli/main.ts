/** The `zerofleet` command. */
import { fileURLToPath } from 'node:url';
import { runCli } from './program.js';

/** Runs the command; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const interrupt = new AbortController();
  // A second Ctrl-C ends the process immediately.
  process.once('SIGINT', () => interrupt.abort());
  const { env, stdin, stdout, stderr } = process;
  // Bundled as well as compiled, this module lies three folders below it.
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  for (const output of [stdout, stderr]) output.on('error', endWithReader);
  const code = await runCli(args, { env, stdin, stdout, stderr, signal: interrupt.signal, root });
  if (code !== null) process.exitCode = code;
  // An interrupted command may hold open connections.
  if (interrupt.signal.aborted && code !== null) process.exit();
}

/** Exits normally if the reader of the output closes early, as `head` does. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
}
