// npm run build: compiles the native addon and the TypeScript; installs nothing.
import { runMain } from './bootstrap/errors.mjs';
import { ensureNative, ensureTypescript } from './bootstrap/setup.mjs';

await runMain(async () => {
  const built = [await ensureNative('addon', 'native core: building'), await ensureTypescript()];
  console.log(built.includes(true) ? 'build done' : 'everything is up to date');
});
