// npm run test:property -- --requests 20000 --seed 7: see test/property/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

await runMain(() => launch('test/property/main.js'));
