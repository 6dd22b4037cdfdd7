import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';

t.test('a child process survives SIGTERM', async (t) => {
  const source = `
    import { leaveSignalsToAgent } from ${JSON.stringify(new URL('signals.js', import.meta.url).href)};
    leaveSignalsToAgent();
    process.stdin.on('data', () => process.exit(7));
    console.log('ready');
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  child.stdin.write('end');
  t.strictSame(await once(child, 'exit'), [7, null]);
});
