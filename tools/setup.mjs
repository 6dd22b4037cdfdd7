// npm run setup: makes the machine and the checkout ready; see bootstrap/setup.mjs.
import { runMain } from './bootstrap/errors.mjs';
import { setUp } from './bootstrap/setup.mjs';

await runMain(async () => {
  console.log((await setUp()) ? 'set-up done' : 'everything is up to date');
});
