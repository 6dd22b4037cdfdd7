// npm run dev: the embedded stack, rebuilt and restarted as its sources change; see dev/watch.mjs. Arguments are those
// of `npm start`.
import { runMain } from './bootstrap/errors.mjs';
import { setUp } from './bootstrap/setup.mjs';
import { developmentLoop } from './dev/watch.mjs';

await runMain(async () => {
  await setUp({ development: true });
  await developmentLoop(process.argv.slice(2));
});
