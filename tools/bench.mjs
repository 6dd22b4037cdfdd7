// npm run bench -- NAME [options]: runs bench/NAME.ts; the result is JSON on standard output.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { runMain, SetupError } from './bootstrap/errors.mjs';
import { compiledDir, inRoot } from './bootstrap/paths.mjs';
import { setUp } from './bootstrap/setup.mjs';

/** Names of the benchmarks: the files of bench/ with a usage line; other files are their parts. */
function benchmarkNames() {
  const names = readdirSync(inRoot('bench'))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.replace(/\.ts$/, ''));
  return names.filter((name) =>
    readFileSync(inRoot('bench', `${name}.ts`), 'utf8').includes(`npm run bench -- ${name}`),
  );
}

await runMain(async () => {
  const [name, ...args] = process.argv.slice(2);
  const names = benchmarkNames();
  if (!names.includes(name)) {
    throw new SetupError(`usage: npm run bench -- NAME [options]\nbenchmarks: ${names.join(', ')}`);
  }
  await setUp({ development: true });
  const child = spawn(process.execPath, [inRoot(compiledDir, 'bench', `${name}.js`), ...args], {
    stdio: 'inherit',
  });
  // A terminal's Ctrl-C reaches the child directly; this process waits for it to clean up.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  const [code] = await once(child, 'exit');
  process.exitCode = code ?? 1;
});
