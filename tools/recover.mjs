// npm run recover: makes the records that Redis has lost again, from the object store; see recover/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

await runMain(() => launch('ops/recover/main.js'));
