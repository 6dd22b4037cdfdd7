// Packs the npm package @zerofleet/client from clients/typescript/ and its imports of contracts/. Its version is the
// project's, so that client and API versions match; its dependencies are the imports of the compiled files.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join, resolve } from 'node:path';
import { runLogged } from '../bootstrap/command.mjs';
import { SetupError } from '../bootstrap/errors.mjs';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const FOLDER = '.build/client';
const IMPORT = /(?:from|import) ?\(?'([^'.][^']*)'/g;

/** Package name of an import specifier: `@scope/name` or `name`, without the path inside it. */
const packageOf = (specifier) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

/** Packages imported by the compiled files, with the versions of the project's manifest. */
function dependenciesOf(files, declared) {
  const names = new Set();
  for (const file of files) {
    for (const [, specifier] of readFileSync(inRoot(file), 'utf8').matchAll(IMPORT)) {
      if (isBuiltin(specifier))
        throw new SetupError(`${file} imports ${specifier}: a browser has no such module`);
      names.add(packageOf(specifier));
    }
  }
  return Object.fromEntries(
    [...names].sort().map((name) => {
      if (!declared[name])
        throw new SetupError(`the client imports ${name}, which package.json does not name`);
      return [name, declared[name]];
    }),
  );
}

/**
 * Compiles the package and packs it.
 * @param {string} out output folder
 * @returns {Promise<string>} the archive's path
 */
export async function packClient(out) {
  const folder = inRoot(FOLDER);
  rmSync(folder, { recursive: true, force: true });
  const tsc = inRoot('node_modules', 'typescript-7', 'bin', 'tsc');
  await runLogged('client-package', [process.execPath, tsc, '-p', 'clients/typescript', '--pretty', 'false']);
  const { version, license, engines, dependencies } = JSON.parse(
    readFileSync(inRoot('package.json'), 'utf8'),
  );
  const compiled = listFiles([FOLDER], (path) => path.endsWith('/') || /\.(js|d\.ts)$/.test(path));
  const manifest = {
    name: '@zerofleet/client',
    version,
    description: 'Client of the zerofleet API: training jobs, typed by its OpenAPI contract, on fetch',
    license,
    type: 'module',
    engines,
    exports: { '.': { types: './clients/typescript/index.d.ts', default: './clients/typescript/index.js' } },
    files: ['clients', 'contracts'],
    dependencies: dependenciesOf(compiled, dependencies),
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  copyFileSync(inRoot('clients/typescript/README.md'), join(folder, 'README.md'));
  copyFileSync(inRoot('LICENSE'), join(folder, 'LICENSE'));
  const target = resolve(out);
  mkdirSync(target, { recursive: true });
  const packed = await runLogged('client-package-pack', [
    'npm',
    'pack',
    folder,
    '--json',
    '--pack-destination',
    target,
  ]);
  const [{ filename }] = JSON.parse(packed.slice(packed.indexOf('[')));
  return join(target, filename);
}
