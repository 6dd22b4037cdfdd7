import type { Argument, Command, Option } from 'commander';
import type { Zerofleet } from '../client/index.js';
import { type Kind, NamedArgument, NamedOption, namesOf } from './names.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** One that may stand where the cursor is. */
export interface Candidate {
  text: string;
  about: string;
}

/** Newest things whose names are offered; a terminal has no room for more. */
const MOST_NAMES = 50;
/** A candidate stands on the command line as it is: what a shell would take for more than a word is not offered. */
const PLAIN_WORD = /^[\w.@%+:/-]+$/;

/**
 * What may stand at the end of a command line.
 * @param words those behind the program's name; the last one is what was typed of the word at the cursor
 * @param connect the API, with the global options that stand on the line; it is only asked for names
 */
export async function candidates(
  program: Command,
  words: readonly string[],
  connect: (options: Record<string, string>) => Zerofleet,
): Promise<Candidate[]> {
  const typed = words.at(-1) ?? '';
  const place = placeOf(program, words.slice(0, -1));
  const found = await valuesAt(program, place, typed, () => connect(place.given));
  return found.filter(({ text }) => text.startsWith(typed) && PLAIN_WORD.test(text));
}

/** Where a line has come to. */
interface Place {
  command: Command;
  /** Arguments of the command that are there. */
  count: number;
  /** The option whose value comes next. */
  option: Option | undefined;
  /** Values of options, by their attribute. */
  given: Record<string, string>;
}

function placeOf(program: Command, words: readonly string[]): Place {
  const place: Place = { command: program, count: 0, option: undefined, given: {} };
  for (const word of words) {
    const { command, option } = place;
    place.option = undefined;
    if (option) place.given[option.attributeName()] = word;
    else if (word.startsWith('-')) place.option = optionOf(program, command, word);
    else {
      const inner = place.count === 0 && command.commands.find((child) => child.name() === word);
      if (inner) place.command = inner;
      else place.count += 1;
    }
  }
  return place;
}

/** An option that wants a value. */
function optionOf(program: Command, command: Command, flag: string): Option | undefined {
  const found = [...command.options, ...program.options].find(
    ({ long, short }) => long === flag || short === flag,
  );
  return found?.required || found?.optional ? found : undefined;
}

function valuesAt(
  program: Command,
  { command, count, option }: Place,
  typed: string,
  connect: () => Zerofleet,
): Candidate[] | Promise<Candidate[]> {
  if (option) return valuesOf(option, connect);
  const help = command.createHelp();
  if (typed.startsWith('-'))
    return help
      .visibleOptions(command)
      .concat(command === program ? [] : program.options)
      .flatMap(({ long, description }) => (long ? [{ text: long, about: description }] : []));
  const argument = command.registeredArguments[count] ?? variadicOf(command);
  if (command.commands.length > 0 && count === 0)
    return help
      .visibleCommands(command)
      .map((child) => ({ text: child.name(), about: child.summary() || child.description() }));
  return argument ? valuesOf(argument, connect) : [];
}

function variadicOf({ registeredArguments }: Command): Argument | undefined {
  const last = registeredArguments.at(-1);
  return last?.variadic ? last : undefined;
}

async function valuesOf(what: Argument | Option, connect: () => Zerofleet): Promise<Candidate[]> {
  if (what instanceof NamedArgument || what instanceof NamedOption) return names(connect(), what.kind);
  return (what.argChoices ?? []).map((text) => ({ text, about: '' }));
}

async function names(client: Zerofleet, kind: Kind): Promise<Candidate[]> {
  const found: Candidate[] = [];
  for (const { id, name, about } of await namesOf(client, kind, MOST_NAMES)) {
    if (name !== '') found.push({ text: name, about });
    found.push({ text: id, about: `${name} ${about}`.trim() });
  }
  // Of several with one name none is meant by it.
  return found.filter(({ text }) => found.filter((other) => other.text === text).length === 1);
}

/** A script that has the program itself say what may follow, as it alone knows; where that is nothing, files are offered. */
export function completionScript(name: string, shell: Shell): string {
  return SCRIPTS[shell].replaceAll('NAME', name);
}

const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `_NAME() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _NAME NAME
`,
  zsh: `autoload -U +X compinit && compinit
_NAME() {
  local -a found
  found=("\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("\${(@)found%%$'\\t'*}")
  if [[ -n "\${found[1]}" ]]; then compadd -- "\${found[@]}"; else _files; fi
}
compdef _NAME NAME
`,
  fish: `complete -c NAME -a '(NAME complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
};
