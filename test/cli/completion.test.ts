/** The completion scripts, in the shells that are there. */
import { spawnSync } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import t from 'tap';
import { runCli } from '../../cli/program.js';

async function script(shell: string): Promise<{ code: number | null; text: string }> {
  const parts: Buffer[] = [];
  const stream = () =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        parts.push(chunk);
        done();
      },
    });
  const { signal } = new AbortController();
  const world = { env: {}, stdin: Readable.from([]), stdout: stream(), stderr: stream(), signal };
  const code = await runCli(['completion', shell], world);
  return { code, text: Buffer.concat(parts).toString() };
}

t.test('bash offers what may follow', async (t) => {
  const { text } = await script('bash');
  const complete = (...words: string[]) => {
    const line = words.map((word) => `'${word}'`).join(' ');
    const ask = `COMP_WORDS=(zerofleet ${line}); COMP_CWORD=${words.length}; _zerofleet; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { status, stdout, stderr } = spawnSync('bash', ['-c', `${text}\n${ask}`], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return stdout.split('\n').filter((word) => word !== '');
  };
  t.strictSame(complete('sub'), ['submit']);
  t.strictSame(complete('re').sort(), ['recover', 'resize', 'resume', 'retry']);
  t.strictSame(complete('--ap'), ['--api-key']);
  t.strictSame(complete('submit', '--dr'), ['--dry-run']);
  t.ok(complete('datasets', '').includes('upload'));
  t.strictSame(complete('--json', 'datasets', 'up'), ['upload'], 'options stand anywhere');
  t.strictSame(complete('get', 'job_1'), [], 'what it does not know it leaves to the shell');
  const accepted = spawnSync('bash', ['-c', `${text}\ncomplete -p zerofleet`], { encoding: 'utf8' });
  t.match(accepted, { status: 0, stdout: /-o default -F _zerofleet zerofleet/ });
});

t.test('every command and option is in every script', async (t) => {
  const [bash, zsh, fish] = await Promise.all(['bash', 'zsh', 'fish'].map(script));
  t.ok(zsh?.text.endsWith(bash?.text ?? '-'));
  const words = [...(bash?.text ?? '').matchAll(/words="(.+)" ;;/g)].flatMap(([, list = '']) =>
    list.split(' '),
  );
  t.ok(words.length > 60);
  for (const word of new Set(words)) {
    const form = word.startsWith('--') ? ` -l ${word.slice(2)} -d ` : ` -a ${word} -d `;
    t.ok(fish?.text.includes(form), word);
  }
  const lines = fish?.text.trim().split('\n') ?? [];
  t.ok(lines.every((line) => /^complete -c zerofleet -n '.*' -(f -a|l) \S+ -d '.*'$/.test(line)));
});

t.test('another shell is refused with advice', async (t) => {
  t.match(await script('tcsh'), { code: 2, text: /Allowed choices are bash, zsh, fish/ });
});
