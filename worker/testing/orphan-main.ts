/**
 * Program of a parent and its child. The parent starts the program of its arguments, by default this one, and sends it
 * their request. It tells the id of the child after the first message of the child, and stays.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { nativeCore } from '../shared/native/adapter.js';

const [role, program = fileURLToPath(import.meta.url), request] = process.argv.slice(2);

if (role === 'parent') {
  const child = fork(program, [], { execArgv: [], serialization: 'advanced' });
  child.once('message', () => process.send?.(child.pid));
  if (request !== undefined) child.send(JSON.parse(request));
} else {
  process.send?.(nativeCore.endWithParent());
  setInterval(() => undefined, 1000);
}
