// npm run generate: makes the generated files again; see bootstrap/generators.mjs.
import { writeFileSync } from 'node:fs';
import { runMain } from './bootstrap/errors.mjs';
import { generators } from './bootstrap/generators.mjs';
import { inRoot } from './bootstrap/paths.mjs';
import { ensureTypescript, setUp } from './bootstrap/setup.mjs';

await runMain(async () => {
  await setUp();
  for (const { file, make } of generators) {
    // Types may have changed by the generator before this one.
    await ensureTypescript();
    writeFileSync(inRoot(file), await make());
    console.log(`  ${file}`);
  }
});
