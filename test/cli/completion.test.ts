/** Shell completion of incomplete command lines. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { commandLine, start } from './command-line.js';

const offline = commandLine({ ZEROFLEET_URL: 'http://127.0.0.1:1', ZEROFLEET_API_KEY: 'k' });

const completer =
  (zerofleet: typeof offline) =>
  async (...words: string[]): Promise<string[]> => {
    const { out } = await zerofleet(['complete', '--', ...words]);
    return out.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0] as string]));
  };

t.test('commands, options, and values of options and arguments', async (t) => {
  const complete = completer(offline);
  t.strictSame(await complete('sub'), ['submit']);
  t.strictSame((await complete('re')).sort(), ['recover', 'replay', 'resize', 'resume', 'retry']);
  t.strictSame(await complete('--ap'), ['--api-key']);
  t.strictSame(await complete('submit', '--dr'), ['--dry-run']);
  t.strictSame(await complete('submit', '--js'), ['--json'], 'options of every command');
  t.ok((await complete('datasets', '')).includes('upload'));
  t.strictSame(await complete('--json', 'datasets', 'up'), ['upload'], 'options may stand anywhere');
  t.strictSame(await complete('--url', 'submit', 'lis'), ['list'], 'a value is not a command');
  t.strictSame(await complete('export', 'job', '--dtype', ''), ['bf16', 'fp16', 'fp32', 'q8_0']);
  t.strictSame(await complete('list', '-s', 'pa'), ['pausing', 'paused']);
  t.strictSame(await complete('completion', 'z'), ['zsh']);
  t.strictSame(await complete('submit', ''), [], 'a file is left to the shell');
  t.strictSame(await complete('get', ''), [], 'without an API there are no names');
});

t.test('names and ids of objects', async (t) => {
  const { stack, zerofleet, file } = await start(t);
  const complete = completer(zerofleet);
  const { id } = await stack.createJob({ name: 'alpha' });
  for (const name of ['twin', 'twin', 'with space', '$(touch']) await stack.createJob({ name });
  await stack.createJob();
  t.strictSame(await complete('get', 'a'), ['alpha']);
  t.strictSame(await complete('get', id.slice(0, 29)), [id]);
  const all = await complete('fork', '');
  t.equal(all.length, 7, 'six ids, and the one name that is an unambiguous word');
  t.strictSame(await complete('fork', 'alpha', '--from-checkpoint', 'al'), ['alpha']);
  await zerofleet(['datasets', 'upload', await file('hamlet.txt', 'to be or not')]);
  t.strictSame(await complete('datasets', 'delete', 'h'), ['hamlet.txt']);
  t.strictSame(await complete('get', 'alpha', 'a'), [], 'there is one argument');
  const described = await zerofleet(['complete', '--', 'get', 'alp']);
  t.equal(described.out, 'alpha\tqueued');
});

/** Completions that a shell offers for words, of which the last is incomplete; null if the shell is not installed. */
function offered(shell: 'bash' | 'zsh' | 'fish', script: string, words: string[]): string[] | null {
  const cli = `import('${join(projectRoot(), 'dist/clients/cli/main.js')}').then(({ main }) => main(process.argv.slice(1)))`;
  const program = `zerofleet() { node -e "${cli}" -- "$@"; }`;
  const line = words.map((word) => `'${word}'`).join(' ');
  const asks = {
    bash: `${program}\n${script}\nCOMP_WORDS=(zerofleet ${line}); COMP_CWORD=${words.length}; _zerofleet; printf '%s\\n' "\${COMPREPLY[@]}"`,
    zsh: `${program}\ncompdef() { :; }; compinit() { :; }; compadd() { shift; print -l -- "$@"; }; _files() { :; }\n${script.replace(/^autoload.*\n/, '')}\nwords=(zerofleet ${line}); CURRENT=${words.length + 1}; _zerofleet`,
    fish: `function zerofleet; node -e "${cli}" -- $argv; end\n${script}\ncomplete -C 'zerofleet ${words.join(' ')}'`,
  };
  const { status, stdout, stderr, error } = spawnSync(shell, ['-c', asks[shell]], { encoding: 'utf8' });
  if (error) return null;
  if (status !== 0) throw new Error(stderr);
  return stdout.split('\n').flatMap((text) => (text === '' ? [] : [text.split('\t')[0] as string]));
}

for (const shell of ['bash', 'zsh', 'fish'] as const)
  t.test(`${shell} asks the program`, async (t) => {
    const { out: script } = await offline(['completion', shell]);
    const found = offered(shell, script, ['datasets', 'up']);
    if (found === null) return t.comment(`${shell} is not installed`);
    t.strictSame(found, ['upload']);
    t.strictSame(offered(shell, script, ['export', 'job', '--dtype', 'f']), ['fp16', 'fp32']);
  });

t.test('another shell is refused with advice', async (t) => {
  t.match(await offline(['completion', 'tcsh']), {
    code: 2,
    err: /Allowed choices are bash, zsh, fish/,
  });
});
