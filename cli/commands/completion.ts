import { Argument, type Command } from 'commander';
import { completionScript, SHELLS, type Shell } from '../completion.js';
import type { World } from '../context.js';

/** Needs no API: a shell runs it whenever it starts. */
export function addCompletionCommand(program: Command, { stdout }: World): void {
  program
    .command('completion')
    .summary('a script that lets a shell complete commands and options')
    .addArgument(new Argument('<shell>', 'which').choices(SHELLS))
    .action((shell: Shell) => {
      stdout.write(completionScript(program, shell));
    });
}
