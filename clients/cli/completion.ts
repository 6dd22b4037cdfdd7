import type { Argument, Command, Option } from 'commander';
import type { Zerofleet } from '../typescript/index.js';
import { type Kind, NamedArgument, NamedOption, namesOf } from './names.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** A completion at the cursor. */
interface Candidate {
  text: string;
  about: string;
}

/** Maximum number of names offered, newest first; more do not fit on a terminal. */
const MAX_NAMES = 50;
/** A completion is inserted unquoted: text that a shell would not read as one word is not offered. */
const PLAIN_WORD = /^[\w.@%+:/-]+$/;

/**
 * Completions at the end of a command line.
 * @param words words after the program's name; the last one is the part of the word at the cursor
 * @param connect returns the API's client for the global options of the line; used only for names
 */
export async function candidates(
  program: Command,
  words: readonly string[],
  connect: (options: Record<string, string>) => Zerofleet,
): Promise<Candidate[]> {
  const typed = words.at(-1) ?? '';
  const state = stateOf(program, words.slice(0, -1));
  const found = await valuesAt(program, state, typed, () => connect(state.given));
  return found.filter(({ text }) => text.startsWith(typed) && PLAIN_WORD.test(text));
}

/** Parsed state of an incomplete command line. */
interface LineState {
  command: Command;
  /** Number of positional arguments given. */
  count: number;
  /** Option whose value comes next. */
  option: Option | undefined;
  /** Option values by attribute name. */
  given: Record<string, string>;
}

function stateOf(program: Command, words: readonly string[]): LineState {
  const state: LineState = { command: program, count: 0, option: undefined, given: {} };
  for (const word of words) {
    const { command, option } = state;
    state.option = undefined;
    if (option) state.given[option.attributeName()] = word;
    else if (word.startsWith('-')) state.option = optionOf(program, command, word);
    else {
      const inner = state.count === 0 && command.commands.find((child) => child.name() === word);
      if (inner) state.command = inner;
      else state.count += 1;
    }
  }
  return state;
}

/** The option of a flag that requires a value. */
function optionOf(program: Command, command: Command, flag: string): Option | undefined {
  const found = [...command.options, ...program.options].find(
    ({ long, short }) => long === flag || short === flag,
  );
  return found?.required || found?.optional ? found : undefined;
}

function valuesAt(
  program: Command,
  { command, count, option }: LineState,
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

async function valuesOf(parameter: Argument | Option, connect: () => Zerofleet): Promise<Candidate[]> {
  if (parameter instanceof NamedArgument || parameter instanceof NamedOption)
    return names(connect(), parameter.kind);
  return (parameter.argChoices ?? []).map((text) => ({ text, about: '' }));
}

async function names(client: Zerofleet, kind: Kind): Promise<Candidate[]> {
  const found: Candidate[] = [];
  for (const { id, name, about } of await namesOf(client, kind, MAX_NAMES)) {
    if (name !== '') found.push({ text: name, about });
    found.push({ text: id, about: `${name} ${about}`.trim() });
  }
  // An ambiguous name is not offered.
  return found.filter(({ text }) => found.filter((other) => other.text === text).length === 1);
}

/** Script that asks the program itself for completions; without completions, files are offered. */
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
