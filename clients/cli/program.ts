import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, CommanderError } from 'commander';
import { ApiError, ConnectionError, type Zerofleet } from '../typescript/index.js';
import { addChangeCommands } from './commands/changes.js';
import { addCheckpointCommands } from './commands/checkpoints.js';
import { addCompletionCommand } from './commands/completion.js';
import { addConsoleCommands } from './commands/console.js';
import { addControlCommands } from './commands/control.js';
import { addDataCommands } from './commands/data.js';
import { addDownloadCommand } from './commands/download.js';
import { addFleetCommands } from './commands/fleet.js';
import { addGraderCommands } from './commands/graders.js';
import { addHelpCommand } from './commands/help.js';
import { addHubTokenCommand } from './commands/hub-token.js';
import { addJobCommands } from './commands/jobs.js';
import { addKeyCommands } from './commands/keys.js';
import { addLocalCommands } from './commands/local.js';
import { addLogCommands } from './commands/logs.js';
import { addMetricsCommand } from './commands/metrics.js';
import { addOverrideCommand } from './commands/override.js';
import { addProjectCommands } from './commands/projects.js';
import { addPushCommand } from './commands/push.js';
import { addReplayCommand } from './commands/replay.js';
import { addSampleCommands } from './commands/samples.js';
import { addShareCommands } from './commands/shares.js';
import { addStartCommands } from './commands/start.js';
import { addStepAnswersCommand } from './commands/step-answers.js';
import { addSweepCommands } from './commands/sweeps.js';
import { addTensorCommands } from './commands/tensors.js';
import { addTrainCommand } from './commands/train.js';
import { addWebhookCommands } from './commands/webhooks.js';
import {
  CliError,
  Context,
  type Environment,
  EXIT,
  type GlobalOptions,
  plainLines,
  type Run,
} from './context.js';
import { findId, listingOf, NamedArgument, NamedOption } from './names.js';

/** Time after Ctrl-C for a command to restore the terminal and close its files. */
const EXIT_GRACE_MS = 300;

const EXAMPLES = `
Examples:
  zerofleet up                                                      everything on this machine
  zerofleet train chats.jsonl --model hf://Qwen/Qwen3-0.6B --lora --watch
  zerofleet chat chats                                              talk to the result
  zerofleet download chats -o model/                                take it away
`;

function build(environment: Environment): Command {
  const program = new Command('zerofleet')
    .description(
      'Training jobs that can stop at any moment and continue on any number of ranks, bit for bit.',
    )
    .option('--url <url>', 'URL of the API (ZEROFLEET_URL, else http://127.0.0.1:8080)')
    .option('--api-key <key>', 'ZEROFLEET_API_KEY, else the key file of a stack on this machine')
    .option('--json', 'print answers as JSON, one per line')
    .version(version(environment.root), '-V, --version', 'print the version')
    .showSuggestionAfterError()
    .showHelpAfterError('Try: zerofleet --help')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => environment.stdout.write(text),
      writeErr: (text) => environment.stderr.write(text),
    });
  const run: Run =
    (action) =>
    async (...rest) => {
      const context = new Context(environment, program.opts<GlobalOptions>());
      try {
        const work = async () => action(context, ...(await resolveNames(context.client, rest)));
        await Promise.race([work(), interruption(environment.signal)]);
      } catch (error) {
        if (!environment.signal.aborted) throw error;
        throw new CliError(context.interruptMessage, EXIT.interrupted);
      }
    };
  const group = (
    heading: string,
    ...adds: ((program: Command, run: Run, environment: Environment) => void)[]
  ) => {
    program.commandsGroup(`${heading}:`);
    for (const add of adds) add(program, run, environment);
  };
  group('Begin', (program) => addLocalCommands(program, environment), addTrainCommand, addStartCommands);
  group('Data and models', addDataCommands, addHubTokenCommand);
  group('Jobs', addJobCommands, addLogCommands, addMetricsCommand, addReplayCommand, addGraderCommands);
  group('Sweeps', addSweepCommands);
  group('Change jobs', addControlCommands, addChangeCommands, addOverrideCommand);
  group(
    'Results',
    addCheckpointCommands,
    addSampleCommands,
    addStepAnswersCommand,
    addDownloadCommand,
    addPushCommand,
    addTensorCommands,
  );
  group('Machines and memory', addFleetCommands);
  group(
    'Console and access',
    addConsoleCommands,
    addKeyCommands,
    addShareCommands,
    addProjectCommands,
    addWebhookCommands,
  );
  group('Help', (program) => addCompletionCommand(program, environment), addHelpCommand);
  program.addHelpText('after', EXAMPLES);
  return program;
}

/** Version in package.json. */
function version(root: string): string {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  return manifest.version;
}

/**
 * Replaces names with ids in the arguments, options and command that commander passes to an action.
 * @throws CliError for an unknown or ambiguous name
 */
async function resolveNames<A extends unknown[]>(client: Zerofleet, rest: A): Promise<A> {
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
  await sleep(EXIT_GRACE_MS);
  throw signal.reason;
}

/**
 * Runs one command line.
 * @param args without the program's name
 * @returns the exit code; null if the command has set it
 */
export async function runCli(args: readonly string[], environment: Environment): Promise<number | null> {
  const say = (text: string) => environment.stderr.write(`${plainLines(text)}\n`);
  try {
    await build(environment).parseAsync([...args], { from: 'user' });
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
        `${error.message}\nIs the API running? zerofleet up starts one here; --url or ZEROFLEET_URL selects another.`,
      );
      return EXIT.unreachable;
    }
    if (environment.signal.aborted) return EXIT.interrupted;
    throw error;
  }
}

/** Message of a refusal with every bad field, and suggestions if the API has any. */
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

/** Message for an id that does not match its pattern; null for any other message. */
function idMessage(message: string): string | null {
  const [, kind = ''] = /^must match pattern "\^([a-z]+)_\[/.exec(message) ?? [];
  const lists = listingOf(kind);
  return lists === undefined ? null : `is not an id (${kind}_… and 26 characters); ${lists} shows them`;
}
