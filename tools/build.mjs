// npm run build: builds the native addon, the programs and the console, and compiles the TypeScript for tests where the
// packages for development are; installs nothing.
import { runMain } from './bootstrap/errors.mjs';
import { npmPackagesAreCurrent } from './bootstrap/npm-packages.mjs';
import { allDone, ensureNative, ensurePrograms, ensureTypescript, ensureWeb } from './bootstrap/setup.mjs';

await runMain(async () => {
  const built = await allDone([
    ensureNative('release', 'native core: building'),
    ensurePrograms(),
    npmPackagesAreCurrent({ development: true }) && ensureTypescript(),
    ensureWeb(),
  ]);
  console.log(built.includes(true) ? 'build done' : 'everything is up to date');
});
