import { pathToFileURL } from 'node:url';
import { compiledDir, inRoot } from './paths.mjs';
import { setUp } from './setup.mjs';

/**
 * Runs the set-up, then a program in this process, so that signals reach it directly.
 * @param {string} program path of its main module, e.g. 'dist/ops/stack/main.js'
 */
export async function launch(program) {
  await setUp({ development: program.startsWith(compiledDir) });
  process.setSourceMapsEnabled(true);
  const { main } = await import(pathToFileURL(inRoot(program)).href);
  await main(process.argv.slice(2));
}
