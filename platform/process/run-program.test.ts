import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';

t.test('a second signal does not end a program that is closing', async (t) => {
  const source = `
    import { runProgram } from ${JSON.stringify(new URL('run-program.js', import.meta.url).href)};
    await runProgram('test', async () => ({
      close: () => new Promise((resolve) => { console.log('closing'); process.stdin.once('data', resolve); }),
    }));
    setInterval(() => undefined, 1_000);
    console.log('started');
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    env: { PATH: process.env.PATH, ZEROFLEET_LOG_LEVEL: 'silent' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  child.kill('SIGINT');
  child.stdin.end('saved');
  t.strictSame(await once(child, 'exit'), [0, null]);
});
