// npm run build: compiles the native addon, the TypeScript and the console; installs nothing.
import { runMain } from './bootstrap/errors.mjs';
import { allDone, ensureNative, ensureTypescript, ensureWeb } from './bootstrap/setup.mjs';

await runMain(async () => {
  const built = await allDone([
    ensureNative('release', 'native core: building'),
    ensureTypescript(),
    ensureWeb(),
  ]);
  console.log(built.includes(true) ? 'build done' : 'everything is up to date');
});
