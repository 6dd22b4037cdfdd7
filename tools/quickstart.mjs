// npm run quickstart: one job from upload to weights, with the proof; see quickstart/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

await runMain(() => launch('ops/quickstart/main.js'));
