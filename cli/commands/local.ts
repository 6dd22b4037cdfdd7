import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import type { World } from '../context.js';

/** Programs of this installation that the command only starts. */
const PROGRAMS = {
  up: fileURLToPath(new URL('../../stack/main.js', import.meta.url)),
  recover: fileURLToPath(new URL('../../ops/recover/main.js', import.meta.url)),
};

/** The commands that run something on this machine, without the API. */
export function addLocalCommands(program: Command, world: World): void {
  const start = (name: keyof typeof PROGRAMS, summary: string, options: string) =>
    program
      .command(name)
      .summary(summary)
      .allowUnknownOption()
      .argument('[options...]', options)
      .action(async (args: string[]) => {
        const child = spawn(process.execPath, ['--enable-source-maps', PROGRAMS[name], ...args], {
          env: world.env,
          stdio: 'inherit',
        });
        // A signal from the terminal reaches the child by itself; one that is sent to this process alone does not.
        const forward = () => child.kill('SIGTERM');
        process.on('SIGTERM', forward);
        const [code] = (await once(child, 'exit')) as [number | null];
        process.off('SIGTERM', forward);
        process.exitCode = code ?? 1;
      });
  start(
    'up',
    'run everything on this machine: Redis, object store, API and a worker, or with --autoscale workers that come and go',
    '--autoscale: workers only while there is work; --api-only, --worker-only: just one part',
  );
  start('recover', 'make the records that Redis has lost again, from the object store', 'handed on');
}
