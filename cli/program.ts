import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, CommanderError } from 'commander';
import { ApiError, ConnectionError, type Zerofleet } from '../client/index.js';
import { addChangeCommands } from './commands/changes.js';
import { addCheckpointCommands } from './commands/checkpoints.js';
import { addCompletionCommand } from './commands/completion.js';
import { addControlCommands } from './commands/control.js';
import { addDataCommands } from './commands/data.js';
import { addDownloadCommand } from './commands/download.js';
import { addFleetCommands } from './commands/fleet.js';
import { addHelpCommand } from './commands/help.js';
import { addJobCommands } from './commands/jobs.js';
import { addKeyCommands } from './commands/keys.js';
import { addLocalCommands } from './commands/local.js';
import { addLogCommands } from './commands/logs.js';
import { addOverrideCommand } from './commands/override.js';
import { addProjectCommands } from './commands/projects.js';
import { addWebhookCommands } from './commands/webhooks.js';
import { CliError, Context, EXIT, type GlobalOptions, plainLines, type Run, type World } from './context.js';
import { findId, listingOf, NamedArgument, NamedOption } from './names.js';

/** Time that a command has after Ctrl-C to leave the terminal and its files in order. */
const LAST_WORDS_MS = 300;

function build(world: World): Command {
  const program = new Command('zerofleet')
    .description('Training jobs that can stop at any moment and go on with any number of ranks, bit for bit.')
    .option('--url <url>', 'where the API is (ZEROFLEET_URL, else http://127.0.0.1:8080)')
    .option('--api-key <key>', 'ZEROFLEET_API_KEY, else the key file of a stack on this machine')
    .option('--json', 'answers as JSON, a line each')
    .version(version(), '-V, --version', 'the version of this program')
    .showSuggestionAfterError()
    .showHelpAfterError('Try: zerofleet --help')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => world.stdout.write(text),
      writeErr: (text) => world.stderr.write(text),
    });
  const run: Run =
    (action) =>
    async (...rest) => {
      const context = new Context(world, program.opts<GlobalOptions>());
      try {
        const work = async () => action(context, ...(await withIds(context.client, rest)));
        await Promise.race([work(), interruption(world.signal)]);
      } catch (error) {
        if (!world.signal.aborted) throw error;
        throw new CliError(context.farewell, EXIT.interrupted);
      }
    };
  addLocalCommands(program, world);
  addJobCommands(program, run);
  addLogCommands(program, run);
  addControlCommands(program, run);
  addChangeCommands(program, run);
  addOverrideCommand(program, run);
  addCheckpointCommands(program, run);
  addDownloadCommand(program, run);
  addDataCommands(program, run);
  addFleetCommands(program, run);
  addCompletionCommand(program, world);
  addKeyCommands(program, run);
  addWebhookCommands(program, run);
  addProjectCommands(program, run);
  addHelpCommand(program);
  return program;
}

/** Of this program, as its package.json has it; compiled files lie a folder deeper than their sources. */
function version(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/**
 * What commander hands to an action, the arguments, options and the command, with ids for all that was named.
 * @throws CliError for a name that nothing has, or several things have
 */
async function withIds<A extends unknown[]>(client: Zerofleet, rest: A): Promise<A> {
  const command = rest.at(-1);
  if (!(command instanceof Command)) return rest;
  const [found, options] = [[...rest] as A, { ...(rest.at(-2) as Record<string, unknown>) }];
  for (const [index, argument] of command.registeredArguments.entries()) {
    const text = rest[index];
    if (argument instanceof NamedArgument && typeof text === 'string')
      found[index] = await findId(client, argument.kind, text);
  }
  for (const option of command.options) {
    const text = options[option.attributeName()];
    if (option instanceof NamedOption && typeof text === 'string')
      options[option.attributeName()] = await findId(client, option.kind, text);
  }
  found[found.length - 2] = options;
  return found;
}

/** Rejects some time after Ctrl-C. */
async function interruption(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  await sleep(LAST_WORDS_MS);
  throw signal.reason;
}

/**
 * Runs one command line.
 * @param args without the program's own name
 * @returns the exit code; null where the command has set it itself
 */
export async function runCli(args: readonly string[], world: World): Promise<number | null> {
  const say = (text: string) => world.stderr.write(`${plainLines(text)}\n`);
  try {
    await build(world).parseAsync([...args], { from: 'user' });
    return null;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (error instanceof CliError) {
      say(error.message);
      return error.exitCode;
    }
    if (error instanceof ApiError) {
      say(explain(error));
      return EXIT.failed;
    }
    if (error instanceof ConnectionError) {
      say(
        `${error.message}\nIs the API there? zerofleet up starts one here; --url or ZEROFLEET_URL names another.`,
      );
      return EXIT.unreachable;
    }
    if (world.signal.aborted) return EXIT.interrupted;
    throw error;
  }
}

/** A refusal with every field that is wrong, and what to write instead where the API knows it. */
function explain(error: ApiError): string {
  const fields = error.problem?.errors ?? [];
  return [
    error.message,
    ...fields.map(({ pointer, message, suggestion }) => {
      const instead = suggestion === undefined ? '' : `  (${suggestion}?)`;
      return `  ${pointer === '' ? '/' : pointer}: ${idMessage(message) ?? message}${instead}`;
    }),
  ].join('\n');
}

/** A pattern that an id does not match, in words; null for any other message. */
function idMessage(message: string): string | null {
  const [, kind = ''] = /^must match pattern "\^([a-z]+)_\[/.exec(message) ?? [];
  const lists = listingOf(kind);
  return lists === undefined ? null : `is no id (${kind}_… and 26 characters); ${lists} shows them`;
}
