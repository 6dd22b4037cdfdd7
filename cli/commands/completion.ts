import { Argument, type Command } from 'commander';
import { Zerofleet } from '../../client/index.js';
import { candidates, completionScript, SHELLS, type Shell } from '../completion.js';
import { connectionOf, plainLines, type World } from '../context.js';

/** Somebody waits for a shell: names that do not come at once are not offered. */
const NAMES_TIMEOUT_MS = 2_000;

export function addCompletionCommand(program: Command, { stdout, env }: World): void {
  program
    .command('completion')
    .summary('a script that lets a shell complete commands, options, values and names')
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
      // Without an API there are no names to offer; a shell has no place for an error.
      const found = await candidates(program, words, connect).catch(() => []);
      for (const { text, about } of found)
        stdout.write(`${text}\t${plainLines(about).replaceAll(/\s+/g, ' ')}\n`);
    });
}
