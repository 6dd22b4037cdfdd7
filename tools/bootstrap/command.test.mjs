import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { capture } from './command.mjs';
import { inRoot } from './paths.mjs';

const MODULE = pathToFileURL(inRoot('tools', 'bootstrap', 'command.mjs')).href;

t.test('output, exit codes and programs that are not there', async (t) => {
  const before = process.listenerCount('SIGTERM');
  t.same(await capture(['sh', '-c', 'echo out; echo err >&2; exit 3']), { code: 3, output: 'out\nerr\n' });
  t.equal((await capture(['no-such-program'])).code, 127);
  t.equal((await capture(['sh', '-c', 'kill $$'])).code, 128);
  t.equal(process.listenerCount('SIGTERM'), before);
});

t.test('a command ends with the process that runs it', async (t) => {
  const script = `import { capture } from ${JSON.stringify(MODULE)};
    await capture(['sh', '-c', 'echo $$; exec sleep 600'], { onLine: (line) => console.log(line) });`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [pid] = await once(parent.stdout.setEncoding('utf8'), 'data');
  t.equal(process.kill(Number(pid), 0), true);
  parent.kill('SIGTERM');
  t.same(await once(parent, 'exit'), [1, null]);
  const isThere = () => {
    try {
      return process.kill(Number(pid), 0);
    } catch {
      return false;
    }
  };
  while (isThere()) await new Promise((resolve) => setTimeout(resolve, 20));
});
