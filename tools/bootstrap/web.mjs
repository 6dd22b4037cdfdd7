import { readFileSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { runLogged } from './command.mjs';
import { fingerprint, listFiles, stampMatches, writeStamp } from './fingerprint.mjs';
import { inRoot } from './paths.mjs';

const stampFile = inRoot('.build', 'web.stamp');
/** The console is made of its own sources and of the client of the API. */
const SOURCES = ['clients/console', 'clients/typescript', 'clients/text', 'contracts'];
const COMPRESSED = /\.(js|css|html|svg)$/;

function inputs() {
  const isSource = (path) => !/^clients\/console\/build\/|\.test\.ts$|\/testing\//.test(path);
  return [...listFiles(SOURCES, isSource), 'package-lock.json'];
}

/** True when clients/console/build was made from exactly these sources. */
export const webIsCurrent = () => stampMatches(stampFile, fingerprint(inputs()));

/** Bundles the console, with a compressed file beside each. */
export async function buildWeb() {
  const value = fingerprint(inputs());
  const vite = inRoot('node_modules', 'vite', 'bin', 'vite.js');
  await runLogged('web', [
    process.execPath,
    vite,
    'build',
    '--config',
    inRoot('clients/console/vite.config.ts'),
  ]);
  for (const file of listFiles(
    ['clients/console/build'],
    (path) => path.endsWith('/') || COMPRESSED.test(path),
  )) {
    const content = readFileSync(inRoot(file));
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    writeFileSync(inRoot(`${file}.br`), brotliCompressSync(content, { params }));
    writeFileSync(inRoot(`${file}.gz`), gzipSync(content, { level: 9 }));
  }
  writeStamp(stampFile, value);
}
