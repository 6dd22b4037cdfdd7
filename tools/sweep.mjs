// npm run sweep: removes what nothing points to from the object store; see sweep/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

await runMain(() => launch('ops/sweep/main.js'));
