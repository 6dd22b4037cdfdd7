import type { Command } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** What may follow a command: its commands and options. */
interface Node {
  /** The names of the commands from the program on, with spaces between them; empty for the program itself. */
  path: string;
  words: readonly Word[];
}

interface Word {
  text: string;
  summary: string;
  is_command: boolean;
}

/** A script that completes the names of commands and options; made from the program itself, so that it knows all of them. */
export function completionScript(program: Command, shell: Shell): string {
  const nodes = nodesOf(program);
  const name = program.name();
  switch (shell) {
    case 'bash':
      return bashScript(name, nodes);
    case 'zsh':
      return `autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n${bashScript(name, nodes)}`;
    case 'fish':
      return fishScript(name, nodes);
  }
}

function nodesOf(command: Command, path = ''): Node[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).map((child) => ({
    text: child.name(),
    summary: child.summary() || child.description(),
    is_command: true,
  }));
  const options = help
    .visibleOptions(command)
    .flatMap(({ long, description }) =>
      long ? [{ text: long, summary: description, is_command: false }] : [],
    );
  const below = command.commands.flatMap((child) => nodesOf(child, `${path} ${child.name()}`.trim()));
  return [{ path, words: [...commands, ...options] }, ...below];
}

/** The words on the line up to the cursor name a command; what may follow it is offered, else files. */
function bashScript(name: string, nodes: readonly Node[]): string {
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`);
  const cases = nodes.map(
    ({ path, words }) => `    "${path}") words="${words.map(({ text }) => text).join(' ')}" ;;`,
  );
  return `_${name}() {
  local path="" next words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${path:+$path }\${COMP_WORDS[i]}"
    case "$next" in
      ${paths.join(' | ')}) path="$next" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _${name} ${name}
`;
}

function fishScript(name: string, nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, words }) => {
    const inner = words.filter(({ is_command }) => is_command).map(({ text }) => text);
    const condition = conditionOf(path, inner);
    return words.map(({ text, summary, is_command }) => {
      const what = is_command ? `-f -a ${text}` : `-l ${text.replace(/^--/, '')}`;
      return `complete -c ${name} -n ${quoted(condition)} ${what} -d ${quoted(summary)}`;
    });
  });
  return `${lines.join('\n')}\n`;
}

/** Every command of the path is on the line, and none that is below it. */
function conditionOf(path: string, inner: readonly string[]): string {
  const seen = path.split(' ').filter((word) => word !== '');
  const on_line = seen.map((word) => `__fish_seen_subcommand_from ${word}`);
  const none = inner.length > 0 ? [`not __fish_seen_subcommand_from ${inner.join(' ')}`] : [];
  return [...on_line, ...none].join('; and ') || 'true';
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
