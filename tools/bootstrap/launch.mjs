import { pathToFileURL } from 'node:url';
import { inRoot } from './paths.mjs';
import { setUp } from './setup.mjs';

/**
 * Runs the set-up, then a compiled program in this process, so that signals reach it directly.
 * @param {string} program path below dist/, e.g. 'stack/main.js'
 * @param {Parameters<typeof setUp>[0]} [options]
 */
export async function launch(program, options) {
  await setUp(options);
  process.setSourceMapsEnabled(true);
  const { main } = await import(pathToFileURL(inRoot('dist', program)).href);
  await main(process.argv.slice(2));
}
