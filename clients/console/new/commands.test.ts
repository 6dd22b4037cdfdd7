import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { COMMANDS, pythonOf } from './commands.js';

const draft = {
  name: `it's "quoted" $HOME \\ \`ls\`\n§`,
  labels: {},
  list: [1, 2.5e-7, null, true, false, []],
  train: { steps: 3, optimizer: { lr: 1e-3 } },
};
const target = { baseUrl: 'http://127.0.0.1:8080', draft };

/** Runs a command in a shell where the programs print their arguments, or their input, as JSON. */
function run(t: Test, command: string): unknown {
  const bin = t.testdir({});
  const program = (name: string, code: string) =>
    writeFileSync(join(bin, name), `#!${process.execPath}\n${code}`, { mode: 0o755 });
  program('curl', 'process.stdout.write(JSON.stringify(process.argv.slice(2)))');
  program(
    'zerofleet',
    "process.stdout.write(JSON.stringify([...process.argv.slice(2), process.env.ZEROFLEET_URL, (await import('node:fs')).readFileSync(0, 'utf8')]))",
  );
  const env = { PATH: `${bin}:/usr/bin:/bin`, ZEROFLEET_API_KEY: 'zf_key', HOME: '/nowhere' };
  return JSON.parse(execFileSync('/bin/sh', ['-c', command], { env, encoding: 'utf8' }));
}

t.test('curl sends the document', async (t) => {
  const [, header, , body, url] = run(t, COMMANDS.curl(target)) as string[];
  t.equal(header, 'Authorization: Bearer zf_key');
  t.equal(url, 'http://127.0.0.1:8080/v1/jobs');
  t.strictSame(JSON.parse(body ?? ''), draft);
});

t.test('the command line reads the document', async (t) => {
  const [command, file, watch, url, body] = run(t, COMMANDS['command line'](target)) as string[];
  t.strictSame([command, file, watch, url], ['submit', '-', '--watch', 'http://127.0.0.1:8080']);
  t.strictSame(JSON.parse(body ?? ''), draft);
});

t.test('TypeScript has the document as a literal', async (t) => {
  const program = COMMANDS.TypeScript(target);
  const [, literal = ''] = /create\(([\s\S]*)\);\nconsole/.exec(program) ?? [];
  t.strictSame(JSON.parse(literal), draft);
});

const noPython = spawnSync('python3', ['--version']).error !== undefined && 'needs python3';

t.test('Python reads the literal as the same value', { skip: noPython }, async (t) => {
  t.ok(COMMANDS.Python(target).includes(`create(${pythonOf(draft)})`));
  const program = `import json\nprint(json.dumps(${pythonOf(draft)}))\n`;
  t.strictSame(JSON.parse(execFileSync('python3', ['-c', program], { encoding: 'utf8' })), draft);
});
