/** The `zerofleet` command. */
import { runCli } from './program.js';

/** Runs the command; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const interrupt = new AbortController();
  // A second Ctrl-C ends the process by itself.
  process.once('SIGINT', () => interrupt.abort());
  const { env, stdin, stdout, stderr } = process;
  for (const output of [stdout, stderr]) output.on('error', endWithReader);
  const code = await runCli(args, { env, stdin, stdout, stderr, signal: interrupt.signal });
  if (code !== null) process.exitCode = code;
  // What was interrupted may hold connections that nobody waits for any more.
  if (interrupt.signal.aborted && code !== null) process.exit();
}

/** Who reads what a command prints may leave early, as `head` does: an ordinary end. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
}
