// npm run sample -- DIRECTORY: text from an exported model; see sample/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

await runMain(() => launch('ops/sample/main.js'));
