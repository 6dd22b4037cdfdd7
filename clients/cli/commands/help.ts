import type { Command } from 'commander';
import { nearestName } from '../../../contracts/index.js';
import { CliError, EXIT } from '../context.js';

/** Adds `help GROUP COMMAND`, which commander does not support. */
export function addHelpCommand(program: Command): void {
  program
    .helpCommand(false)
    .command('help')
    .summary('show what a command does, and its options')
    .argument('[command...]', 'name of the command; for a command in a group, both names')
    .action((names: string[]) => {
      let found = program;
      for (const name of names) {
        const inner = found.commands.find((child) => child.name() === name);
        if (!inner) throw unknownCommand(found, name);
        found = inner;
      }
      found.outputHelp();
    });
}

function unknownCommand(group: Command, name: string): CliError {
  const near = nearestName(
    name,
    group.commands.map((child) => child.name()),
  );
  const where = group.parent === null ? '' : ` in ${group.name()}`;
  const meant = near === undefined ? '' : `\nDid you mean ${near}?`;
  return new CliError(`there is no command ${name}${where}${meant}`, EXIT.usage);
}
