// npm run build: compiles the native addon and the TypeScript; installs nothing.
import { runMain } from './bootstrap/errors.mjs';
import { allDone, ensureNative, ensureTypescript } from './bootstrap/setup.mjs';

await runMain(async () => {
  const built = await allDone([ensureNative('release', 'native core: building'), ensureTypescript()]);
  console.log(built.includes(true) ? 'build done' : 'everything is up to date');
});
