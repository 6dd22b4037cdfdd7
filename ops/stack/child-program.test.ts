import { join } from 'node:path';
import { Writable } from 'node:stream';
import t from 'tap';
import { ChildProgram } from './child-program.js';

/** Collects the output of a child. */
function collector(): { output: Writable; text: () => string } {
  let text = '';
  const output = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  return { output, text: () => text };
}

const options = (dir: string, output: Writable) => ({
  name: 'program',
  program: join(dir, 'program.mjs'),
  env: { GREETING: 'hello' },
  output,
});

t.test('starts, reports that it is ready, and ends on SIGTERM', async (t) => {
  const dir = t.testdir({
    'program.mjs': `
      process.on('SIGTERM', () => { console.log('ending'); process.disconnect(); });
      process.on('disconnect', () => {});
      console.log(process.env.GREETING);
      process.send({ kind: 'ready' });`,
  });
  const { output, text } = collector();
  const program = await ChildProgram.start(options(dir, output));
  await program.stop();
  await program.stop();
  t.strictSame(await program.exited, { code: 0, signal: null });
  // Its last lines may arrive after its exit.
  while (!text().endsWith('ending\n')) await new Promise((resolve) => setTimeout(resolve, 5));
  t.equal(text(), 'hello\nending\n');
});

t.test('a program that exits before it is ready is an error', async (t) => {
  const dir = t.testdir({ 'program.mjs': 'process.exit(3);' });
  await t.rejects(
    ChildProgram.start(options(dir, collector().output)),
    /the program ended while starting \(exit code 3\)/,
  );
});

t.test('an exit after the start is reported', async (t) => {
  const dir = t.testdir({
    'program.mjs': `process.send({ kind: 'ready' }); process.kill(process.pid, 'SIGKILL');`,
  });
  const program = await ChildProgram.start(options(dir, collector().output));
  t.strictSame(await program.exited, { code: null, signal: 'SIGKILL' });
});
