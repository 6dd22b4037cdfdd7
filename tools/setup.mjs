// npm run setup: sets up the machine and the checkout; see bootstrap/setup.mjs.
import { runMain } from './bootstrap/errors.mjs';
import { setUp } from './bootstrap/setup.mjs';

await runMain(async () => {
  console.log((await setUp()) ? 'set-up done' : 'everything is up to date');
});
