/** `npm start`: the stack in the foreground until SIGINT or SIGTERM. */
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Zerofleet } from '../../clients/typescript/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { configFor } from './config.js';
import { parseParts, type StackParts } from './options.js';
import { endSignal, explainStartError } from './program.js';
import { type Stack, startStack } from './stack.js';

async function announce({ url, firstKey }: Stack, { autoscaler }: StackParts): Promise<void> {
  if (firstKey?.isNew)
    process.stdout.write(`API key, printed only once and stored in the file below: ${firstKey.secret}\n`);
  if (firstKey?.file) process.stdout.write(`API key file: ${firstKey.file}\n`);
  if (autoscaler)
    process.stdout.write('no worker runs yet; workers are started for jobs and stopped when idle\n');
  // Clients on this machine find a server whose port was chosen.
  if (url !== null && firstKey?.file) await writeFile(join(dirname(firstKey.file), 'address'), `${url}\n`);
  if (url !== null && firstKey !== null)
    process.stdout.write(`console: ${await signInAddress(url, firstKey.secret)}\n`);
  process.stdout.write(url === null ? 'ready\n' : `ready ${url}\n`);
}

/** How a user signs in to the console. Only a terminal gets a code: a file would keep it. */
async function signInAddress(baseUrl: string, apiKey: string): Promise<string> {
  const dir = process.env.ZEROFLEET_DATA_DIR;
  const later = `${dir ? `ZEROFLEET_DATA_DIR=${dir} ` : ''}npx zerofleet open`;
  if (!process.stdout.isTTY) return later;
  const client = new Zerofleet({ baseUrl, apiKey, retry: { tries: 1 } });
  try {
    return `${(await client.sessions.address()).url} (once, within two minutes; later: ${later})`;
  } catch {
    // Redis may be away; the stack serves as soon as it is back.
    return later;
  }
}

/** Runs the stack; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const ended = endSignal();
  // A closed terminal accepts no output; the shutdown must continue anyway.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  try {
    const parts = parseParts(args);
    const config = configFor(process.env, process.stderr);
    const log = createLogger({ level: config.log_level, name: 'stack', destination: process.stderr });
    const stack = await startStack({ config, parts, log });
    await announce(stack, parts);
    const cause = await ended;
    if (process.stdout.isTTY)
      process.stdout.write('\nstopping; running jobs are saved and continue at the next start\n');
    log.info({ cause }, 'shutting down');
    await stack.stop();
    if (process.connected) process.disconnect();
  } catch (error) {
    process.stderr.write(`${explainStartError(error)}\n`);
    process.exitCode = 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
