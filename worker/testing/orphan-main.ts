/** Program of a parent and its child, which asks the kernel to end with its parent; argv selects the role. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endWithParent } from '../native/adapter.js';

if (process.argv[2] === 'child') {
  process.send?.({ armed: endWithParent() });
  // The child stays alive without its channel, so that only the kernel can end it.
  process.once('message', () => process.disconnect());
  setInterval(() => undefined, 1000);
} else {
  const child = fork(fileURLToPath(import.meta.url), ['child'], { execArgv: [] });
  child.once('message', (message: object) => {
    child.once('disconnect', () => process.send?.({ ...message, pid: child.pid }));
    child.send('go');
  });
}
