import { mkdirSync, rmSync, statSync } from 'node:fs';
import { SetupError } from './errors.mjs';
import { fingerprint, listFiles, stampMatches, writeStamp } from './fingerprint.mjs';
import { compiledDir, inRoot, ROOMS } from './paths.mjs';

/** Packages that read files of their own folders: a native module, the schemas of OpenAPI, the pages of Swagger UI. */
const EXTERNAL = ['@node-rs/crc32', 'fastify-openapi-glue', '@fastify/swagger', '@fastify/swagger-ui'];
/** A program that still runs may load the modules of an earlier build later. */
const KEEP_OLD_MS = 24 * 3600 * 1000;

const isSource = (path) => path.endsWith('/') || /(?<!\.test)\.ts$/.test(path);
const isOfTests = (path) => /^test\/|\/testing\//.test(path);
const entriesOf = (files) => files.filter((file) => /[/-]main\.ts$/.test(file));

const products = () => listFiles(ROOMS, isSource).filter((path) => !isOfTests(path));
const stampFile = inRoot('dist', '.stamp');
const SETTINGS = ['package-lock.json', 'tsconfig.json', 'tools/bootstrap/programs.mjs'];
const currentStamp = () => fingerprint([...products(), ...SETTINGS]);

/** True when dist/ was bundled from exactly these sources. */
export const programsAreCurrent = () => stampMatches(stampFile, currentStamp());

function removeOldFiles(folder, written) {
  const now = Date.now();
  for (const file of listFiles([folder], () => true)) {
    if (!written.has(file) && now - statSync(inRoot(file)).mtimeMs > KEEP_OLD_MS) rmSync(inRoot(file));
  }
}

/**
 * Bundles modules and all that they import to the same paths below a folder. Parts that several share become its
 * chunks/.
 */
async function bundle(entries, folder) {
  const { rolldown } = await import('rolldown');
  mkdirSync(inRoot(folder), { recursive: true });
  try {
    const build = await rolldown({
      cwd: inRoot(),
      input: Object.fromEntries(entries.map((file) => [file.replace(/\.ts$/, ''), file])),
      platform: 'node',
      external: EXTERNAL,
      tsconfig: inRoot('tsconfig.json'),
    });
    const { output } = await build.write({
      dir: inRoot(folder),
      format: 'esm',
      sourcemap: true,
      entryFileNames: '[name].js',
      chunkFileNames: 'chunks/[name]-[hash].js',
    });
    await build.close();
    removeOldFiles(folder, new Set(output.map(({ fileName }) => `${folder}/${fileName}`)));
  } catch (error) {
    throw new SetupError(`the programs cannot be bundled: ${error.message}`);
  }
}

/** Bundles one module in memory, without a check of its types. */
export async function bundledText(file) {
  const { rolldown } = await import('rolldown');
  const build = await rolldown({ input: inRoot(file), platform: 'node' });
  const { output } = await build.generate({ format: 'esm' });
  await build.close();
  return output[0].code;
}

/**
 * Bundles each program and each thread with the packages that it imports to dist/. A bundled rank loads in about half
 * the processor time. Their main modules are files named main.ts or …-main.ts. Types are checked by the compiler
 * (typescript.mjs), which set-up does not need.
 */
export async function bundlePrograms() {
  const value = currentStamp();
  await bundle(entriesOf(products()), 'dist');
  writeStamp(stampFile, value);
}

/** Bundles the programs of the tests, such as ranks without the native core. */
export async function bundleTestPrograms() {
  const entries = entriesOf(listFiles([...ROOMS, 'test'], isSource)).filter(isOfTests);
  await bundle(entries, `${compiledDir}/programs`);
}
