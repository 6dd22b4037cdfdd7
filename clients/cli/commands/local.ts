import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { Environment } from '../context.js';

/** Programs of the installation that the command only starts. */
const PROGRAMS = { up: 'dist/ops/stack/main.js', recover: 'dist/ops/recover/main.js' };

/** Commands that run programs on this machine, without the API. */
export function addLocalCommands(program: Command, environment: Environment): void {
  const start = (name: keyof typeof PROGRAMS, summary: string, options: string) =>
    program
      .command(name)
      .summary(summary)
      .allowUnknownOption()
      .argument('[options...]', options)
      .action(async (args: string[]) => {
        const main = join(environment.root, PROGRAMS[name]);
        const child = spawn(process.execPath, ['--enable-source-maps', main, ...args], {
          env: environment.env,
          stdio: 'inherit',
        });
        // A signal from the terminal reaches the child as well; a signal sent only to this process is forwarded.
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
  start('recover', 'restore records lost with Redis from the object store', 'handed on');
}
