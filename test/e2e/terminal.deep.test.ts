/** First use of the command line: two real, recorded terminals on a new stack. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { stringify } from 'yaml';
import { projectRoot } from '../../platform/process/root.js';
import { freePort } from '../../platform/testing/free-port.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { cleanEnvironment, sampleText } from '../support/stack.js';
import { Terminal, whyNoTerminal } from '../support/terminal.js';

t.setTimeout(600_000);

const STEPS = 240;
/** Steps of a job that runs on any machine until all commands are tried. */
const MANY_STEPS = 50_000;
const STACK_TRACE = /^\s+at .*(?:node:|\.[jt]s:\d)|UnhandledPromise|triggerUncaughtException/m;
const BAR =
  /[█░]{12} +\d+ % +step (\d+)\/50000 +loss \d+\.\d{4} +[\d,]+ tok\/s +\d ranks? +\d+ (?:s|min|h|d)[^\n]*? left/;
/** Step in the newest bar of a terminal; null without a bar. */
const stepOf = (shown: string) => {
  const last = [...shown.matchAll(new RegExp(BAR, 'g'))].at(-1);
  return last ? Number(last[1]) : null;
};

t.test('a first try, in two terminals', { skip: whyNoTerminal() ?? false }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'zf-terminal-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  // Same place as after `npm link`.
  mkdirSync(join(dir, 'bin'));
  symlinkSync(join(projectRoot(), 'tools', 'zerofleet.mjs'), join(dir, 'bin', 'zerofleet'));
  writeFileSync(join(dir, 'corpus.txt'), sampleText());
  const spec = (name: string, steps: number) =>
    largerSteps(smallJob({ name, dataset: 'DATASET', steps, ranks: 2, every_steps: 60 }));
  writeFileSync(join(dir, 'template.yaml'), stringify(spec('first', MANY_STEPS)));
  writeFileSync(join(dir, 'short-template.yaml'), stringify(spec('short', STEPS)));
  const port = await freePort();
  const env = {
    ...cleanEnvironment(),
    PATH: `${join(dir, 'bin')}:${process.env.PATH}`,
    ZEROFLEET_PORT: String(port),
    ZEROFLEET_URL: `http://127.0.0.1:${port}`,
  };
  const server = await Terminal.open(t, { name: 'up', dir, env });
  const you = await Terminal.open(t, { name: 'you', dir, env });
  const ask = async (command: string, expected: RegExp, code = 0): Promise<string> => {
    const shown = await you.run(`${command}; echo "exit $?"`);
    t.match(shown, expected, command);
    t.match(shown, new RegExp(`exit ${code}\n`), `${command}: exit code`);
    return shown;
  };

  t.comment('mistakes get advice');
  await ask('zerofleet list', /no API key.*zerofleet up creates it/s, 2);
  server.type('zerofleet up');
  await server.see(/ready http:\/\/127\.0\.0\.1:\d+\n/);
  await ask('zerofleet', /Usage: zerofleet/, 2);
  await ask('zerofleet submitt job.yaml', /Did you mean submit\?/, 2);
  await ask('zerofleet submit job.yaml', /there is no file job\.yaml/, 2);
  await ask('zerofleet submit template.yaml', /no dataset is named DATASET, .*zerofleet datasets shows/, 1);
  await ask('zerofleet watch job_1', /no job is named job_1, .*zerofleet list shows/, 1);
  await ask('zerofleet resize job_1 --ranks many', /whole number/, 2);

  t.comment('a job is submitted and watched; Ctrl-C leaves it running');
  await ask('ID=$(zerofleet datasets upload corpus.txt)', /text, 40\.0 kB, sha256:/);
  await you.run('sed "s/DATASET/$ID/" template.yaml > job.yaml');
  await you.run('sed "s/DATASET/$ID/" short-template.yaml > short.yaml');
  await ask(
    'JOB=$(zerofleet submit job.yaml)',
    /queued in pool default; watch it with: zerofleet watch job_\w+/,
  );
  you.type('zerofleet watch $JOB; echo "exit $?"');
  const first = stepOf(await you.see(BAR)) ?? 0;
  t.match(
    await you.interrupt(),
    /the job keeps running; watch it again with: zerofleet watch job_\w+\n[\s\S]*exit 130/,
  );

  you.type('zerofleet watch $JOB; echo "exit $?"');
  await you.seeThat((shown) => (stepOf(shown) ?? 0) > first);
  t.match(await you.interrupt(), /exit 130/);
  await ask('zerofleet get $JOB', /state +running\n/);

  t.comment('it is paused, resumed on three ranks, and its log is read');
  await ask('zerofleet pause $JOB', /pausing/);
  await ask('zerofleet watch $JOB', /state +paused \(user_request\)\n/);
  await ask('zerofleet resume $JOB --ranks 3', /queued +3 ranks/);
  you.type('zerofleet logs $JOB -f --rank 2; echo "exit $?"');
  await you.see(/\d\d:\d\d:\d\d\.\d{3} {2}rank 2 +rank 2 of 3 job=job_\w+/);
  t.match(
    await you.interrupt(),
    /the job keeps running; show its log again with: zerofleet logs job_\w+ -f\n[\s\S]*exit 130/,
  );
  await ask('zerofleet cancel $JOB', /cancel/);
  await ask('zerofleet watch $JOB', /state +cancelled/, 1);

  t.comment('a short one is watched to its end');
  await ask('JOB=$(zerofleet submit short.yaml)', /queued in pool default/);
  const shown = await ask('zerofleet watch $JOB', /state +succeeded \(completed\)\n/);
  t.match(shown, /[█]{12} +100 % +step 240\/240 +loss \d/);
  await ask('zerofleet logs $JOB --rank 0 -n 9', /step 240 of 240 loss=\d/);

  t.comment('its model is exported and downloaded');
  await ask(
    'CKPT=$(zerofleet checkpoints $JOB --json | grep -o "ckpt_[0-9A-Z]*" | head -1); echo $CKPT',
    /\nckpt_\w+\n/,
  );
  await ask(
    'zerofleet export $CKPT --dtype fp16',
    /jobs\/job_\w+\/exports\/240-ckpt_[\w-]+fp16\n[\s\S]*model\.safetensors[\s\S]*fetch it with: zerofleet download ckpt_/,
  );
  await ask(
    'zerofleet download $JOB -o model',
    /100 %[\s\S]*model: \d files, [^\n]* all checked by SHA-256\n/,
  );
  await ask('zerofleet download $CKPT --format safetensors --dtype fp16 -o half', /half: \d files/);
  const size = (folder: string) => statSync(join(dir, folder, 'model.safetensors')).size;
  t.ok(Math.abs(size('model') - size('half')) < 1_000, 'both have two bytes for each parameter');
  t.ok(readdirSync(join(dir, 'model')).includes('config.json'));
  t.ok(size('model') > 100_000);

  t.comment('Ctrl-C ends all processes, and no stack traces were printed');
  const stopped = await server.interrupt();
  t.match(stopped, /\nstopping; running jobs are saved/);
  t.notMatch(stopped, /error|\{"level"/i, 'no warnings about successful actions');
  await ask('zerofleet list', /no answer[\s\S]*Is the API running\? zerofleet up starts one here/, 3);
  for (const terminal of [server, you]) t.notMatch(terminal.record(), STACK_TRACE);
});
