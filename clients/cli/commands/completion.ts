import { Argument, type Command } from 'commander';
import { Zerofleet } from '../../typescript/index.js';
import { candidates, completionScript, SHELLS, type Shell } from '../completion.js';
import { connectionOf, type Environment, plainLines } from '../context.js';

/** Timeout of name look-ups: the user waits for the shell. */
const NAMES_TIMEOUT_MS = 2_000;

export function addCompletionCommand(program: Command, { stdout, env }: Environment): void {
  program
    .command('completion')
    .summary('print a script for shell completion of commands, options, values and names')
    .addArgument(new Argument('<shell>', 'which').choices(SHELLS))
    .action((shell: Shell) => {
      stdout.write(completionScript(program.name(), shell));
    });
  program
    .command('complete', { hidden: true })
    .argument('[words...]', 'the line up to the cursor')
    .action(async (words: string[]) => {
      const connect = (options: Record<string, string>) =>
        new Zerofleet({
          ...connectionOf(env, options),
          retry: { tries: 1 },
          fetch: (request) => fetch(request, { signal: AbortSignal.timeout(NAMES_TIMEOUT_MS) }),
        });
      // Without an API there are no names to offer, and a shell cannot show an error here.
      const found = await candidates(program, words, connect).catch(() => []);
      for (const { text, about } of found)
        stdout.write(`${text}\t${plainLines(about).replaceAll(/\s+/g, ' ')}\n`);
    });
}
