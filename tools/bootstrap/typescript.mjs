import { existsSync, readFileSync, rmSync } from 'node:fs';
import { runLogged } from './command.mjs';
import { fingerprint, listFiles, stampMatches, writeStamp } from './fingerprint.mjs';
import { compiledDir, inRoot } from './paths.mjs';
import { bundleTestPrograms } from './programs.mjs';

/** It bundles the programs of the tests. */
const PROGRAMS = 'tools/bootstrap/programs.mjs';
const stampFile = inRoot(compiledDir, '.stamp');

function inputs() {
  const { include } = JSON.parse(readFileSync(inRoot('tsconfig.json'), 'utf8'));
  const folders = include.map((path) => path.replace(/\/\*\*.*/, ''));
  const accept = (path) => (path.endsWith('/') ? path !== 'clients/console/build/' : /\.tsx?$/.test(path));
  return [
    ...listFiles(folders, accept),
    'tsconfig.json',
    'clients/console/tsconfig.json',
    'package-lock.json',
    PROGRAMS,
  ];
}

/** True when these sources have been checked and compiled. */
export const typescriptIsCurrent = () => stampMatches(stampFile, fingerprint(inputs()));

/** Removes stale outputs: tsc never deletes, so a compiled test without its source would still run. */
function removeStaleOutputs() {
  const programs = `${compiledDir}/programs/`;
  const outputs = listFiles([compiledDir], (path) =>
    path.endsWith('/') ? path !== programs : path.endsWith('.js'),
  );
  for (const output of outputs) {
    const source = output.slice(compiledDir.length + 1).replace(/\.js$/, '.ts');
    if (existsSync(inRoot(source))) continue;
    rmSync(inRoot(output));
    rmSync(inRoot(`${output}.map`), { force: true });
  }
}

/** Checks the types of all TypeScript, and compiles it, apart from the console, for the tests and benchmarks. */
export async function compileTypescript() {
  const value = fingerprint(inputs());
  const tsc = [process.execPath, inRoot('node_modules', 'typescript-7', 'bin', 'tsc'), '--pretty', 'false'];
  await runLogged('typescript', tsc);
  await runLogged('typescript-web', [...tsc, '--project', inRoot('clients', 'console')]);
  removeStaleOutputs();
  await bundleTestPrograms();
  writeStamp(stampFile, value);
}
