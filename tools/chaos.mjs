// npm run test:chaos -- --minutes 10 --seed 7: see test/chaos/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

await runMain(() => launch('test/chaos/main.js'));
