import { existsSync, readFileSync, rmSync } from 'node:fs';
import { runLogged } from './command.mjs';
import { fingerprint, listFiles, stampMatches, writeStamp } from './fingerprint.mjs';
import { inRoot } from './paths.mjs';

const stampFile = inRoot('dist', '.stamp');

function inputs() {
  const { include } = JSON.parse(readFileSync(inRoot('tsconfig.json'), 'utf8'));
  const folders = include.map((path) => path.replace(/\/\*\*.*/, ''));
  const files = listFiles(folders, (path) => path.endsWith('/') || path.endsWith('.ts'));
  return [...files, 'tsconfig.json', 'package-lock.json'];
}

/** True when dist/ was compiled from exactly these sources. */
export const typescriptIsCurrent = () => stampMatches(stampFile, fingerprint(inputs()));

/** Removes stale outputs: tsc never deletes, so a compiled test without its source would still run. */
function removeStaleOutputs() {
  const outputs = listFiles(['dist'], (path) => path.endsWith('/') || path.endsWith('.js'));
  for (const output of outputs) {
    if (existsSync(inRoot(output.replace(/^dist\//, '').replace(/\.js$/, '.ts')))) continue;
    rmSync(inRoot(output));
    rmSync(inRoot(`${output}.map`), { force: true });
  }
}

/** Compiles all TypeScript to dist/, which mirrors the source tree. */
export async function compileTypescript() {
  const value = fingerprint(inputs());
  await runLogged('typescript', [
    process.execPath,
    inRoot('node_modules', 'typescript', 'bin', 'tsc'),
    '--pretty',
    'false',
  ]);
  removeStaleOutputs();
  writeStamp(stampFile, value);
}
