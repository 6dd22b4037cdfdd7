// npm run generate: regenerates the generated files; see bootstrap/generators.mjs.
import { writeFileSync } from 'node:fs';
import { runMain } from './bootstrap/errors.mjs';
import { contractGenerators, generators } from './bootstrap/generators.mjs';
import { inRoot } from './bootstrap/paths.mjs';
import { ensureNpmPackages, ensureTypescript } from './bootstrap/setup.mjs';

await runMain(async () => {
  await ensureNpmPackages({ development: true });
  for (const [index, { file, make }] of generators.entries()) {
    // The contract comes first: code that uses a new type of it would not compile before.
    if (index >= contractGenerators.length) await ensureTypescript();
    writeFileSync(inRoot(file), await make());
    console.log(`  ${file}`);
  }
});
